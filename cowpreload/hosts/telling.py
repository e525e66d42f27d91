"""What happens to workers, said by the master: a line of its log, and an event.

Workers decide, and put it on the board; the master finds it at its turns, about once a
second. Must not raise: the master's loop calls it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from cowpreload.board import Board
from cowpreload.event_log import EVENT_LOG, tell
from cowpreload.lifecycle import NewWorker, Recycling

Say = Callable[[str], object]


class Workers:
    """What was said of each slot."""

    def __init__(self, say: Say, warn: Say, detail: Say) -> None:
        """Begin.

        Args:
            say, warn: log a line, and one on a fault.
            detail: logs a line for who wants to know all.
        """
        self._say, self._warn, self._detail = say, warn, detail
        self._known: dict[int, int] = {}  # generations, by slot

    def look(self, board: Board | None, slot: int) -> None:
        """Say what is new of a slot; 0 is none."""
        if board is None or not slot:
            return
        with contextlib.suppress(Exception):
            new, gone = self._new(board, slot), board.take_end(slot)
            if new and gone and new.generation > gone.generation:
                self._tell_gone(gone)
                gone = None
            if new:
                tell(new, self._detail)
            if gone:
                self._tell_gone(gone)

    def look_at_all(self, board: Board) -> None:
        """Say what is new of every slot, at a turn."""
        board.restore()
        for slot in board.slots():
            self.look(board, slot)
        EVENT_LOG.turn()

    def _tell_gone(self, gone: Recycling) -> None:
        tell(gone, self._say if gone.action == "recycled" else self._warn)

    def _new(self, board: Board, slot: int) -> NewWorker | None:
        new = board.ready_worker(slot)
        if new is None or self._known.get(slot) == new.generation:
            return None
        self._known[slot] = new.generation
        return new
