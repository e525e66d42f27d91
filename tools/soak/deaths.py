"""Who died, and of what: what we did, and what the server's log says of it.

Takes each kill and stop when it is done, and the log's lines as they come. A worker
that a signal ended and nobody meant to end is `unexpected`.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from dataclasses import dataclass

BY_US = "our SIGKILL"
BY_LIMIT = "hard limit"
BY_UNHEEDED = "unheeded, then killed"
BY_HOST = "stopped by us, killed by the host's timeout"

_COW = re.compile(r"cow: worker=\d+ gen=\d+ pid=(\d+) killed (.*)")
_SIGNALLED = re.compile(
    r"Worker \(pid:(\d+)\) was sent SIG(\w+)!"
    r"|\(pid: (\d+)\) died, killed by signal (\d+)"
)
_EXITED = re.compile(r"Worker \(pid:(\d+)\) exited with code (\d+)")
# A worker that is told to go before it has set its handlers, as by a quick TTOU.
_HARMLESS = ("TERM", "15")


@dataclass(frozen=True)
class Death:
    """A worker's end in the midst of what it did.

    Attributes:
        at: monotonic seconds: of ours when it was done, else when the log said it.
    """

    at: float
    pid: int
    cause: str


@dataclass(frozen=True)
class Stop:
    """A worker that we stopped, and let go on; monotonic seconds."""

    pid: int
    began: float
    ended: float


class Deaths:
    """Those of one server, and its stops; told of by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stalled: set[int] = set()
        self._said: list[tuple[float, int, str]] = []
        self.known: list[Death] = []
        self.stops: list[Stop] = []

    def kills(self, pid: int) -> None:
        """We are about to send SIGKILL to it."""
        self._add(Death(time.monotonic(), pid, BY_US))

    def stalls(self, pid: int) -> None:
        """We have stopped it for longer than the host waits for a worker."""
        with self._lock:
            self._stalled.add(pid)

    def goes_on(self, pid: int, began: float) -> None:
        """What we have stopped then goes on now."""
        with self._lock:
            self.stops.append(Stop(pid, began, time.monotonic()))

    def read(self, line: str, at: float) -> None:
        """One line of the log."""
        if found := _COW.search(line):
            cause = BY_LIMIT if "hard-limit" in found[2] else BY_UNHEEDED
            self._add(Death(at, int(found[1]), cause))
        elif found := _SIGNALLED.search(line):
            pid, name = int(found[1] or found[3]), found[2] or found[4]
            with self._lock:
                if pid in self._stalled:
                    self.known.append(Death(at, pid, BY_HOST))
                elif name not in _HARMLESS:
                    self._said.append((at, pid, line.strip()))
        elif found := _EXITED.search(line):
            with self._lock:
                self._said.append((at, int(found[1]), line.strip()))

    def _add(self, death: Death) -> None:
        with self._lock:
            self.known.append(death)

    @property
    def causes(self) -> dict[str, int]:
        """How many of each cause."""
        return dict(Counter(each.cause for each in self.known))

    @property
    def unexpected(self) -> list[str]:
        """What the log says of workers that nobody meant to end so."""
        killed = {each.pid for each in self.known}
        return [line for _, pid, line in self._said if pid not in killed]
