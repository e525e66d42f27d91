"""Log why a worker was told to go: in the master, when it is decided.

Not when it is over: a worker that finishes a long request has been decided upon, and
one that never goes would never be named. Must not raise: the master's loop calls it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from cowpreload.board import Board


def log_end(board: Board | None, slot: int, log: Any) -> None:
    """Log the last decision about the slot's worker, if it is new."""
    line = board.end_line(slot) if board is not None and slot else ""
    if line:
        (log.info if " recycled " in line else log.warning)(line)


def log_each_turn(
    arbiter: Any, board: Callable[[], Board | None], then: Callable[[Any], None]
) -> None:
    """Log what is new in each turn of the master's loop, about once a second; `then`.

    gunicorn has no hook there. Where it has lost this method, the line comes when the
    worker has gone.
    """
    theirs = getattr(arbiter, "murder_workers", None)
    if theirs is None or "murder_workers" in vars(arbiter):
        return

    def murder_workers() -> None:
        theirs()
        for worker in list(arbiter.WORKERS.values()):
            with contextlib.suppress(Exception):
                log_end(board(), getattr(worker, "cow_slot", 0), arbiter.log)
        then(arbiter)

    arbiter.murder_workers = murder_workers
