"""Trial: the child. Requests candidates, one after another, and says what each did.

Takes candidates, the work of this application, and the pipe to the master. Ends by
os._exit, without exit handlers and without a flush: what is buffered is the master's.
A candidate that seems to have left something open ends it too, after everything was
closed that the master would close before a fork: only then it is known. One that took
much memory is requested twice: what it takes again, it would keep at each request.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from cowpreload import collector
from cowpreload.candidates import Answered, Candidate
from cowpreload.ending import children, end_all, held
from cowpreload.errors import said
from cowpreload.units import MIB, format_size

# Threads that are about to end, in seconds.
_ENDING_SECONDS = 1.0
_PAUSE_SECONDS = 0.01
_LONGEST = 300  # characters of a reason
# A first request may take much for good reasons, an import; the second may not: the
# master would be larger by more than its workers save. On the example site one page
# that nobody visits keeps 10 MB of each request: warmed, it made 255 MiB of 245.
_MUCH = 8 * MIB
_KEEPS = 4 * MIB
_ROLLUP = "/proc/self/smaps_rollup"
# The signals that end the child as they would without Python, and those that are none
# of its business. A terminal sends them to all processes of a server.
_ENDING = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGALRM", "SIGCHLD")
_CRASHING = ("SIGSEGV", "SIGFPE", "SIGBUS", "SIGILL", "SIGABRT")
_IGNORED = ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGTTIN", "SIGTTOU", "SIGWINCH", "SIGTSTP")


@dataclass(frozen=True)
class Work:
    """What a child does, as the host composes it; all of it runs in the child.

    Attributes:
        begin: what a worker does first.
        visit: request candidates as they come, until the function says no.
        why_dropped: why an answer is no good, or "".
        close: what the master closes by itself, at any time.
        left: the same, and what is called once before a fork; then what was left that
            does not survive one, as texts.
        seconds: after which a child ends, even if nobody is there to end it.
        again: what is called and closed unasked before the next fork.
    """

    begin: Callable[[], None]
    visit: Callable[[Iterable[Candidate], Answered], None]
    why_dropped: Callable[[int, BaseException | None], str]
    close: Callable[[], object]
    left: Callable[[], Sequence[str]]
    seconds: float
    again: Callable[[], object]


class Messages:
    """The pipe to the master: a JSON object a line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pid = os.getpid()

    def send(self, **message: Any) -> None:
        """Write one whole."""
        if os.getpid() != self._pid:
            os._exit(0)  # a page has forked, and its child came back
        text = json.dumps(message).encode() + b"\n"
        while text:
            text = text[os.write(self._descriptor, text) :]


def private_memory() -> int:
    """Bytes that the system gets back when this process goes; 0 if it cannot tell."""
    found = 0
    try:
        with open(_ROLLUP, "rb") as rollup:
            for line in rollup:
                if line.startswith((b"Private_Dirty:", b"SwapPss:")):
                    found += int(line.split()[1]) * 1024
    except OSError:
        return 0
    return found


def _pooled() -> set[str]:
    """Threads that end with the event loop: anyio keeps those that had work."""
    return {
        str(each.native_id)
        for each in threading.enumerate()
        if type(each).__module__.startswith("anyio.")
    }


def _listed(directory: str) -> set[str]:
    try:
        return set(os.listdir(directory))
    except OSError:
        return set()


@dataclass(frozen=True)
class _Open:
    """What this process has open: threads, descriptors, processes."""

    threads: int
    files: set[str]
    children: set[str]

    @classmethod
    def now(cls) -> _Open:
        threads = _listed("/proc/self/task") - _pooled()
        return cls(len(threads), _listed("/proc/self/fd"), children())

    def is_more_than(self, other: _Open) -> bool:
        more = self.files - other.files or self.children - other.children
        return bool(more) or self.threads > other.threads


class _Visitor:
    """One after another: what was open before and after each."""

    def __init__(self, work: Work, messages: Messages) -> None:
        self._work = work
        self._messages = messages
        self._opened = _Open.now()
        self._private = 0
        self._began = 0.0
        self._first: tuple[float, int] | None = None
        self.unsettled = False

    def candidates(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """Each, when it is its turn; an event loop runs by then, if there is one."""
        self._opened, self._private = _Open.now(), private_memory()
        for number, each in enumerate(candidates):
            self._first = None
            for _ in range(2):
                self._messages.send(begun=number)
                self._began = time.monotonic()
                yield each
                if self._first is None:
                    break

    def answered(self, _: Candidate, status: int, error: BaseException | None) -> bool:
        seconds = time.monotonic() - self._began
        dropped = self._work.why_dropped(status, error)[:_LONGEST]
        grown = self._grown()
        self.unsettled = self._opens_more()
        if self._first is not None:
            if not dropped and grown >= _KEEPS:
                dropped = f"keeps {format_size(grown)} at each request"
            seconds, grown = self._first
        elif grown >= _MUCH and not dropped and not self.unsettled:
            self._first = seconds, grown
            return True
        self._messages.send(
            answer={
                "status": status,
                "seconds": seconds,
                "private": grown,
                "dropped": dropped,
                "unsettled": self.unsettled,
            }
        )
        return not self.unsettled

    def _grown(self) -> int:
        """Bytes of private memory since the last look."""
        private = private_memory()
        if private - self._private >= _KEEPS:
            gc.collect(0)  # the collector is off, and most pages leave cycles
            private = private_memory()
        grown, self._private = private - self._private, private
        return max(0, grown)

    def _opens_more(self) -> bool:
        """Whether more seems to be open than before the first request."""
        if _Open.now().is_more_than(self._opened):
            self._work.close()
        return _Open.now().is_more_than(self._opened)


def _default_signals(mask: Iterable[int]) -> None:
    """Those of a process that nobody has set up; blocked is what was in the master.

    uWSGI's handler of a crash would run the exit handlers of the master.
    """
    ending = _ENDING if faulthandler.is_enabled() else _ENDING + _CRASHING
    for names, handler in ((ending, signal.SIG_DFL), (_IGNORED, signal.SIG_IGN)):
        for name in names:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(getattr(signal, name), handler)
    with contextlib.suppress(ValueError):
        signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _await_threads(count: int) -> None:
    until = time.monotonic() + _ENDING_SECONDS
    while _Open.now().threads > count and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)


def _left(work: Work, threads: int) -> str:
    """What the last request has left, once all is closed that can be."""
    work.close()
    _await_threads(threads)
    left = [*work.left(), *(f"process pid={each}" for each in children())]
    return f"leaves {'; '.join(left)}"[:_LONGEST] if left else ""


def run(
    candidates: Sequence[Candidate],
    work: Work,
    messages: Messages,
    mask: Iterable[int],
    begin: Callable[[], object],
) -> NoReturn:
    """In the child, at once after the fork; never returns.

    Args:
        mask: the signals that were blocked in the master.
        begin: the host's, and what is the master's of the pipe.
    """
    try:
        begin()
        _default_signals(mask)
        signal.setitimer(signal.ITIMER_REAL, work.seconds)  # an application may undo it
        collector.stop()  # it writes to all that is shared
        collector.unfreeze()  # what looks at the heap must see all of it
        work.begin()
        threads = _Open.now().threads
        visitor = _Visitor(work, messages)
        work.visit(visitor.candidates(candidates), visitor.answered)
        if visitor.unsettled:
            messages.send(settled=_left(work, threads))
        else:
            # It may wait for ever for what a page has queued.
            messages.send(closing=True)
            work.again()
        messages.send(through=True)
    except BaseException as error:  # noqa: BLE001 - whatever a page raises
        with contextlib.suppress(BaseException):
            messages.send(failed=f"raised {said(error)}"[:_LONGEST])
    finally:
        end_all(held(os.getpid()))
        os._exit(0)
