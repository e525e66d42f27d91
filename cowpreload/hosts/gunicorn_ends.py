"""Log why a worker was told to go: in the master, when it is decided.

Not when it is over: a worker that finishes a long request has been decided upon, and
one that never goes would never be named. Must not raise: the master's loop calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cowpreload.board import Board
from cowpreload.event_log import EVENT_LOG
from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.telling import Workers

_workers: list[Workers] = []  # one master, one log


def log_end(board: Board | None, slot: int, log: Any) -> None:
    """Log what is new of the slot's worker."""
    if not _workers:
        say = Unfailing(log)
        _workers.append(Workers(say.info, say.warning, say.debug))
    _workers[0].look(board, slot)


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
        shared = board()
        if shared is not None:
            shared.restore()
            # TTOU, or a reload, may have met a worker while it left.
            if len(arbiter.WORKERS) >= arbiter.num_workers:
                shared.fill_no_more()
        for worker in list(arbiter.WORKERS.values()):
            log_end(shared, getattr(worker, "cow_slot", 0), arbiter.log)
        EVENT_LOG.turn()
        then(arbiter)

    arbiter.murder_workers = murder_workers
