"""The last freeze of a server, on its board: the master writes it, reports read it.

Nothing is decided by it.
"""

from __future__ import annotations

from cowpreload._core import lib
from cowpreload.board import Board
from cowpreload.view import Frozen


def add(
    board: Board, objects: int, immortal: int, seconds: float, inherited: int
) -> None:
    """One more is over. Master only.

    Args:
        objects, immortal, seconds, inherited: as Frozen has them.
    """
    raw = board.raw.frozen
    raw.at_ms = 0
    raw.objects, raw.immortal, raw.bytes = objects, immortal, inherited
    raw.ms = round(seconds * 1000)
    raw.generation += 1
    raw.at_ms = lib.cow_now_ms()


def read(board: Board) -> Frozen | None:
    """What is there; None before the first one, and while it is written."""
    raw = board.raw.frozen
    if not raw.at_ms:
        return None
    return Frozen(
        generation=int(raw.generation),
        inherited=int(raw.bytes),
        objects=int(raw.objects),
        immortal=int(raw.immortal),
        seconds=raw.ms / 1000,
        age=max(0, lib.cow_now_ms() - raw.at_ms) / 1000,
    )
