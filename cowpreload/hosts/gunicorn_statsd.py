"""Gauges of ours through gunicorn's own statsd client, where `--statsd-host` is set.

Called at the turns of gunicorn's master. Takes what is on the board, reads nothing from
/proc, opens no socket: gunicorn's client has the address, the prefix and the tags. Must
not raise, and must not wait: an agent that does not read a Unix socket would hold the
master for ever.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

from cowpreload._core import lib
from cowpreload.board import Board
from cowpreload.settings import Settings
from cowpreload.slots import by_reason
from cowpreload.view import SlotView

# In check intervals: as often as a statsd server flushes, unless set otherwise.
_TURNS = 10
_NAME = "gunicorn.cow"  # gunicorn's own begin with its name, too
_GONE = {"private_bytes": 0, "shared_bytes": 0, "pss_bytes": 0}


def _gauges(view: SlotView) -> Mapping[str, int]:
    return {
        "private_bytes": view.private,
        "shared_bytes": view.shared,
        "pss_bytes": view.pss,
        "generation": view.generation,
    }


class _NeverWaiting:
    """In the place of the client's socket: what is not taken at once is dropped.

    So is the rest of that turn: gunicorn logs a traceback for each datagram that fails.
    """

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.has_failed = False

    def send(self, data: bytes) -> int:
        """As socket.send, but that it neither waits nor raises."""
        if not self.has_failed:
            try:
                return int(self._sock.send(data, socket.MSG_DONTWAIT))
            except OSError:
                self.has_failed = True
        return 0


@contextlib.contextmanager
def _never_waiting(log: Any) -> Iterator[_NeverWaiting | None]:
    """The client of gunicorn's master, for a turn; None: another client's, as it is."""
    theirs = getattr(log, "sock", None)
    if theirs is None:
        yield None
        return
    log.sock = ours = _NeverWaiting(theirs)
    try:
        yield ours
    finally:
        log.sock = theirs


class Statsd:
    """What was sent last."""

    def __init__(self) -> None:
        self._next = 0.0
        self._slots: set[int] = set()
        self._counts: dict[str, int] = {}

    def turn(
        self, arbiter: Any, board: Board | None, settings: Settings | None
    ) -> None:
        """Send, if it is time."""
        now = time.monotonic()
        if board is None or settings is None or now < self._next:
            return
        self._next = now + _TURNS * settings.check_interval
        if not arbiter.cfg.statsd_host:
            return
        # Another logger than gunicorn's, too.
        with contextlib.suppress(Exception), _never_waiting(arbiter.log) as sock:
            self._send(arbiter.log, board, sock)

    def _send(self, log: Any, board: Board, sock: _NeverWaiting | None) -> None:
        views = list(board)
        for view in views:
            for name, value in _gauges(view).items():
                log.gauge(f"{_NAME}.worker.{view.slot}.{name}", value)
        here = {each.slot for each in views}
        for slot in self._slots - here:  # a server would show the last values for ever
            for name, value in _GONE.items():
                log.gauge(f"{_NAME}.worker.{slot}.{name}", value)
        self._slots = here
        log.gauge(f"{_NAME}.workers", len(views))
        log.gauge(f"{_NAME}.budget_bytes", int(board.raw.whole.budget))
        log.gauge(f"{_NAME}.private_bytes", sum(each.private for each in views))
        log.gauge(f"{_NAME}.workers_pss_bytes", sum(each.pss for each in views))
        for name, count in self._counted(board).items():
            before = self._counts.get(name, 0)
            if count > before:
                log.increment(f"{_NAME}.{name}", count - before)
            if sock is None or not sock.has_failed:  # else with the next turn's
                self._counts[name] = count

    def _counted(self, board: Board) -> dict[str, int]:
        """What only rises, by name."""
        counts = board.raw.counts
        rows = {"recycled": lib.COW_RECYCLE, "killed": lib.COW_KILL}
        found = {
            f"{name}.{reason.replace('-', '_')}": count
            for name, row in rows.items()
            for reason, count in by_reason(counts.ends[row])
        }
        return found | {"readings_failed": int(counts.readings_failed)}


STATSD = Statsd()
