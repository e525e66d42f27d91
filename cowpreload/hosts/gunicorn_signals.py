"""What is sent to gunicorn's master during the warm up, and whether it serves yet.

gunicorn sets its signal handlers after `on_starting`, where the warm up runs: without
this module SIGHUP (logrotate, systemd) kills the master there, and so does SIGTERM,
with the pid file left behind. Main thread of the master only.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from gunicorn.arbiter import Arbiter

from cowpreload.deadline import UNWIND, end_within

# How long a signal waits for what can be left out, in seconds.
_PATIENCE = 1.0
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Stopped(SystemExit):
    """Raised in the warm up when the master is told to end."""


class Waiting:
    """The signals that came before gunicorn could take them.

    Attributes:
        stop: the signal that told the master to end, or 0.
    """

    def __init__(self) -> None:
        self.stop = 0
        self._others: list[int] = []
        self._since = 0.0

    def _later(self, number: int, frame: FrameType | None) -> None:
        self._since = self._since or time.monotonic()
        self._others.append(number)

    def waits(self) -> bool:
        """Whether what can be left out should be: one came to end, or another waits."""
        late = time.monotonic() - self._since > _PATIENCE
        return bool(self.stop) or (bool(self._others) and late)

    def told(self) -> bool:
        """Whether the master was told to end."""
        return bool(self.stop)

    def _now(self, number: int, frame: FrameType | None) -> None:
        self.stop = number
        end_within(UNWIND)
        raise Stopped(0)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Keep all signals for gunicorn; those that tell it to end raise Stopped.

        Where the start fails, they do again what they did before.
        """
        serves = running_arbiter() is not None
        before: dict[int, Any] = {}
        try:
            for number in _STOPS if serves else Arbiter.SIGNALS:
                ours = self._now if number in _STOPS else self._later
                before[number] = signal.signal(number, ours)
            yield
            if self.stop:  # the page has caught it
                raise Stopped(0)
            for number in _STOPS:
                signal.signal(number, before[number] if serves else self._later)
        except BaseException:
            for number, handler in before.items():
                signal.signal(number, handler)
            raise

    def give(self) -> None:
        """Send again what came: gunicorn's handlers are set."""
        while self._others:
            signal.raise_signal(self._others.pop(0))


@contextlib.contextmanager
def children_wait() -> Iterator[None]:
    """Without gunicorn's handler of SIGCHLD: whoever dies waits, unreaped.

    gunicorn 23 reaps in it, and raises HaltServer there where a worker could not boot:
    in a page of ours it would be taken for the page's, in the last writing of a file
    the file would be lost. Raise SIGCHLD after it, where the server goes on.
    """
    if "gevent.monkey" in sys.modules:  # its handler cannot be put back from Python
        yield
        return
    before = signal.signal(signal.SIGCHLD, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL if before is None else before)


def running_arbiter() -> Any:
    """The arbiter of this process once it runs, else None: SIGHUP is its own then."""
    handler: Callable[..., Any] | int | None = signal.getsignal(signal.SIGHUP)
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Arbiter) else None
