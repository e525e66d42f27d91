"""Bound the time that one warm-up request may take, and say which one takes long.

Takes seconds and a function that logs a line; gives a context manager for one request,
which ends what runs in it with Overdue. An interval timer and SIGALRM interrupt the
main thread. Where they cannot (an application in an interpreter of its own, or with an
alarm of its own; C code that does not return) a native thread of `faulthandler` prints
where it hangs and ends the process. Must leave no timer and no thread behind, and must
not use a thread of Python's.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from collections.abc import Callable
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

from cowpreload.errors import WarmupError

Function = TypeVar("Function", bound=Callable[..., Any])

# What takes longer than this, in seconds, is worth a line.
SLOW = 1.0
# What an interrupted page may take to unwind, in seconds, before the process is ended:
# threads that it left waiting would keep Python's exit waiting too.
UNWIND = 5.0


class Overdue(BaseException):
    """Raised in a page that takes too long; no `except Exception` should see it."""


def unsaid(line: str) -> None:
    """Where nobody listens."""


def end_within(seconds: float, ends: bool = True) -> None:
    """End the process with all tracebacks in so many seconds, whatever it then does.

    Or, unless it `ends`, print them.
    """
    with contextlib.suppress(Exception):
        faulthandler.dump_traceback_later(seconds, exit=ends, file=2)


def named(function: Function, name: str) -> Function:
    """`function` under another name: what is printed of a stack that hangs shows it."""
    plain = cast(FunctionType, function)
    code = plain.__code__.replace(co_name=name)
    if hasattr(code, "co_qualname"):
        code = code.replace(co_qualname=name)
    return cast(Function, FunctionType(code, plain.__globals__, name))


def _timer() -> tuple[float, float]:
    return signal.getitimer(signal.ITIMER_REAL)


def _threads() -> frozenset[str]:
    """The threads of this process, native ones too."""
    try:
        return frozenset(os.listdir("/proc/self/task"))
    except OSError:
        return frozenset()


def can_interrupt() -> bool:
    """Whether the alarm is ours to take: the application has none of its own."""
    free = (signal.SIG_DFL, signal.SIG_IGN)
    return signal.getsignal(signal.SIGALRM) in free and not any(_timer())


class Deadline:
    """`with Deadline(...)` around one request, in the main thread.

    Attributes:
        expired: whether the time is over; whoever else ends the request sets it.
        seconds: that the request may take.
    """

    def __init__(
        self,
        what: str,
        seconds: float,
        say: Callable[[str], None],
        patience: float = 0.0,
        fatal: bool = True,
        ends: bool = True,
        then: str = "",
    ) -> None:
        """Prepare one.

        Args:
            what: is named: `warmup=/path`.
            seconds: that the request may take.
            say: logs a line.
            patience: seconds that somebody else has to end the request first.
            fatal: whether the start ends if the time is over. If not, the process goes
                on where the request can be interrupted, and ends only where not.
            ends: whether it ends there. A master that serves does not: its workers
                would go with it. What hangs is printed, and it hangs on.
            then: what follows, and what to do, where it is given up.
        """
        self.expired = False
        self.seconds = seconds
        self._what = what
        self._say = say
        self._patience = patience
        self._fatal = fatal
        self._ends = ends
        self._then = f"; {then}" if then else ""
        self._began = 0.0
        self._said = False
        self._inside = False
        self._armed = False
        self._step = min(SLOW, seconds)
        self._unwind = min(UNWIND, seconds)
        self._before: Any = None
        self._watching: frozenset[str] = frozenset()

    def expire(self) -> None:
        """Say that the time is over, once; the process ends soon after."""
        if not self.expired:
            self.expired = True
            self._tell(f"given up after {self.seconds:g} s{self._then}")

    def _tell(self, text: str) -> None:
        with contextlib.suppress(Exception):  # it may interrupt a line being written
            self._say(f"cow: {self._what}: {text}")

    def _tick(self, number: int, frame: FrameType | None) -> None:
        elapsed = time.monotonic() - self._began
        if not self._inside:
            return
        if elapsed >= self.seconds + self._patience:
            self.expire()
            raise Overdue(self._what)
        if elapsed >= SLOW and not self._said:
            self._said = True
            ends = "the start ends" if self._fatal else "it is given up"
            self._tell(
                f"takes longer than {SLOW:g} s; {ends} at "
                f"warmup-timeout={self.seconds:g}s"
            )

    def _arm(self) -> bool:
        """Whether the timer is ours: not in an interpreter or thread without signals,
        nor where the application has set an alarm itself."""
        if not can_interrupt():
            return False
        try:
            self._before = signal.signal(signal.SIGALRM, self._tick)
        except ValueError:
            return False
        # Again and again: a page may catch even this, and go on.
        signal.setitimer(signal.ITIMER_REAL, self._step, self._step)
        return True

    def __enter__(self) -> Deadline:
        self._began = time.monotonic()
        self._inside = True
        self._armed = self._arm()
        spare = self._unwind + self._patience if self._armed else 0.0
        threads = _threads()
        end_within(self.seconds + spare, self._ends)
        self._watching = _threads() - threads
        return self

    def _disarm(self) -> None:
        # The page may have set an alarm of its own, and left it.
        if self._armed and _timer()[1] == self._step:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._armed and signal.getsignal(signal.SIGALRM) == self._tick:
            signal.signal(signal.SIGALRM, self._before)
        self._inside = False

    def _dismiss(self) -> None:
        """End the native thread: 5 in 100 still lived when faulthandler was back, and
        the audit would have found one that nobody knows."""
        faulthandler.cancel_dump_traceback_later()
        until = time.monotonic() + 1.0
        while self._watching & _threads() and time.monotonic() < until:
            os.sched_yield()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._disarm()
        except Overdue as late:
            error = error or late
            self._disarm()
        if self.expired:
            if self._fatal:
                end_within(self._unwind)
            else:
                self._dismiss()
            raise WarmupError(
                f"{self._what}: no answer within {self.seconds:g} s; mend the page, "
                "leave the path out, or raise warmup-timeout"
            ) from error
        self._dismiss()
        elapsed = time.monotonic() - self._began
        if elapsed >= SLOW:
            self._tell(f"took {elapsed:.1f} s")


class Bounds:
    """How long each request may take, and whether one that takes longer ends the start.

    `seconds` may be None: somebody outside of this process watches over it.
    """

    def __init__(
        self,
        seconds: float | None,
        say: Callable[[str], None],
        fatal: bool = True,
        ends: bool = True,
    ) -> None:
        self._seconds = seconds
        self._say = say
        self._fatal = fatal
        self._ends = ends

    def over(
        self, what: str, patience: float = 0.0, then: str = ""
    ) -> contextlib.AbstractContextManager[Deadline | None]:
        """For one request, or one event of a lifespan."""
        if self._seconds is None:
            return contextlib.nullcontext()
        return Deadline(
            what, self._seconds, self._say, patience, self._fatal, self._ends, then
        )
