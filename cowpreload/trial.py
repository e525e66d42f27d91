"""Trial: request candidates in a forked child of the master, before the master does.

Takes candidates and what the child is to do; gives what each did: Tried, dropped where
it is not to warm the master. A candidate that ends or hangs the child costs that child
and its own time limit; another child goes on with the next. Every child is ended and
reaped, whatever the master is told meanwhile. The master must be at rest: what it has
open is closed, as before any fork.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cowpreload.candidates import NO_TIME, Candidate, Tried
from cowpreload.ending import end_all, held
from cowpreload.forks import Forks
from cowpreload.trial_child import Messages, Work, run

# The time limit of a candidate is at most this share of the time for all: one that
# hangs must not take the others' time.
_SHARE = 0.25
# What a child may take to begin, and to find out what a candidate has left, in seconds:
# threads may be about to end, and large heaps take a while to look through.
_SETTLING_SECONDS = 5.0
# How often the master looks whether a signal waits, in seconds.
_LOOK_SECONDS = 0.2


def _real(module: str, name: str) -> Any:
    """A function that gevent may have patched: it would wait for a loop that does not
    run here, to close a descriptor even."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched(module):
        return monkey.get_original(module, name)
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Limits:
    """What a trial may take, in seconds: a candidate, and all of them."""

    candidate: float
    all: float


class _Child:
    """One forked child, from here."""

    def __init__(
        self, candidates: Sequence[Candidate], work: Work, forks: Forks
    ) -> None:
        self._reading, writing = os.pipe()
        self.pid, master = 0, os.getpid()
        close = _real("os", "close")
        # A signal between the fork and the store of the pid would lose the child.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with warnings.catch_warnings():  # on the threads that it loses
                warnings.simplefilter("ignore", DeprecationWarning)
                try:
                    self.pid = (forks.fork or _real("os", "fork"))()
                except BaseException:
                    close(self._reading)
                    raise
            if self.pid == 0:

                def begin() -> None:
                    close(self._reading)
                    forks.begin(master)

                run(candidates, work, Messages(writing), before, begin)
        finally:
            close(writing)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._text = b""

    def message(self, seconds: float) -> dict[str, Any] | None:
        """The next one; None if none comes in time.

        Raises:
            EOFError: none will come.
        """
        until = time.monotonic() + seconds
        poll = _real("select", "poll")()
        poll.register(self._reading, select.POLLIN)
        while b"\n" not in self._text:
            left = until - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                if self._ended():  # a process that it has left may hold the pipe
                    raise EOFError
                return None
            more = os.read(self._reading, 65536)
            if not more:
                raise EOFError
            self._text += more
        line, _, self._text = self._text.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError:  # a page has written there
            found = None
        return found if isinstance(found, dict) else {}

    def _ended(self) -> bool:
        try:
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, how) is not None
        except ChildProcessError:  # somebody else reaps all children
            return True

    def end(self) -> str:
        """End and reap it; how it ended, if it was by itself.

        With it ends what its page has started and waits for.
        """
        started = [*held(self.pid)]  # before their parent ends
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        end_all(started)
        _real("os", "close")(self._reading)
        try:
            _, status = _real("os", "waitpid")(self.pid, 0)
        except ChildProcessError:
            return "ended the process"
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            with contextlib.suppress(ValueError):
                return f"ended the process by {signal.Signals(number).name}"
            return f"ended the process by signal {number}"
        return f"ended the process with code {os.WEXITSTATUS(status)}"


class Trial:
    """The candidates that are left, and what is known of the others.

    Attributes:
        tried: in the order of the trial.
        note: why it ended before all were tried, or "".
        faults: what cost more than the page that was being tried.
    """

    def __init__(
        self,
        work: Work,
        limits: Limits,
        stopped: Callable[[], bool],
        forks: Forks,
    ) -> None:
        """Prepare one.

        Args:
            stopped: whether to break it off.
            forks: of the host.
        """
        self._work = work
        self._forks = forks
        self._limit = min(limits.candidate, limits.all * _SHARE)
        self._until = time.monotonic() + limits.all
        self._stopped = stopped
        self.tried: list[Tried] = []
        self.note = ""
        self.faults: list[str] = []

    def over(self, candidates: Sequence[Candidate]) -> None:
        """Try them, in as many children as it takes."""
        left = list(candidates)
        with _own_children():
            while left and not self.note:
                done = len(self.tried)
                self._one_child(left)
                tried = {each.candidate for each in self.tried[done:]}
                left = [each for each in left if each not in tried]
        for each in left:
            self.tried.append(Tried(each, dropped=f"not tried: {self.note}"))

    def _wait(self, child: _Child, limit: float) -> dict[str, Any] | None:
        """The next message; None after `limit` seconds, or with a note."""
        until = time.monotonic() + limit
        while True:
            now = time.monotonic()
            if self._stopped():
                self.note = "a signal waits"
            elif now >= self._until:
                self.note = NO_TIME
            if self.note or now >= until:
                return None
            wait = min(_LOOK_SECONDS, until - now, self._until - now)
            message = child.message(max(wait, 0.0))
            if message is not None:
                return message

    def _one_child(self, candidates: Sequence[Candidate]) -> None:
        """Until it has ended, by itself or not; a note if it got nowhere."""
        before = len(self.tried)
        begun: Candidate | None = None
        answer: dict[str, Any] = {}
        reason = ""
        closing = False
        began = 0.0
        child = _Child(candidates, self._work, self._forks)
        try:
            limit = max(self._limit, _SETTLING_SECONDS)
            while (message := self._wait(child, limit)) is not None:
                limit = self._limit
                if "begun" in message:
                    begun, answer = candidates[message["begun"]], {}
                    began = time.monotonic()
                elif "answer" in message:
                    answer = message["answer"]
                    if answer.pop("unsettled"):
                        limit = max(limit, _SETTLING_SECONDS)
                    else:
                        self._done(begun, answer, "")
                        begun = None
                elif "settled" in message:
                    self._done(begun, answer, message["settled"])
                    begun = None
                elif "closing" in message:
                    closing = True
                elif "failed" in message:
                    reason = message["failed"]
                elif "through" in message:
                    return
            if self.note:
                return
            reason = f"no {'end' if answer else 'answer'} within {limit:g} s"
            if closing:
                reason = f"before_fork callbacks do not come back within {limit:g} s"
        except EOFError:
            pass
        finally:
            how = child.end()
            self._forks.reaped(child.pid)
        reason = reason or how
        if begun is not None:
            self._done(begun, {"seconds": time.monotonic() - began} | answer, reason)
        elif len(self.tried) > before:
            self._spoil(before, reason)
        else:
            self.note = f"its child: {reason}"

    def _spoil(self, first: int, reason: str) -> None:
        """Drop all that one child has tried: it did not come to its own end."""
        dropped, pages = f"the child that tried it: {reason}", 0
        for number in range(first, len(self.tried)):
            if not self.tried[number].dropped:
                self.tried[number] = replace(self.tried[number], dropped=dropped)
                pages += 1
        if pages:
            self.faults.append(f"{pages} tried in one child stay cold: {reason}")

    def _done(
        self, candidate: Candidate | None, answer: dict[str, Any], left: str
    ) -> None:
        if candidate is not None:
            dropped = answer.pop("dropped", "") or left
            self.tried.append(Tried(candidate, dropped=dropped, **answer))


@contextlib.contextmanager
def _own_children() -> Iterator[None]:
    """Let no handler of the host's reap a child here, nor the kernel itself.

    gevent's reaps in its loop, which does not run here; to put it back is beyond
    Python.
    """
    if "gevent.monkey" in sys.modules:
        yield
        return
    try:
        before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL if before is None else before)
