"""What was warmed, and what it brought: the master's record on the board, for reports.

Takes a Warming when it is over; gives all that are there to whoever has the board. The
start's is number 0, of a server without a warm up too; of those after it, the last few
are kept. Nothing is decided by them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from cowpreload import _core
from cowpreload._core import lib
from cowpreload.board import Board
from cowpreload.errors import NativeError
from cowpreload.view import SlotView
from cowpreload.warmed import SOURCES, Warming, by_source

_VERDICTS = ("", "confirmed", "not confirmed")


def total_pss(views: Iterable[SlotView]) -> int:
    """Bytes of a server: this process, its master, and its workers as the board has
    them; 0 if the master cannot be read."""
    try:
        return _core.take_reading().pss + sum(each.pss for each in views)
    except NativeError:
        return 0


class Measuring:
    """A warm up from here on: its time, and what this process grows by."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._heap = _core.heap_size()

    def of(self, sources: Iterable[str], requests: int = 0) -> Warming:
        """What was done since; `sources` has that of each page that was warmed."""
        seconds = time.monotonic() - self._began
        grew = max(0, _core.heap_size() - self._heap)
        return Warming(by_source(sources), requests, seconds, grew)


def _place(number: int) -> int:
    kept = lib.COW_WARMINGS - 1
    return 1 + (number - 1) % kept if number else 0


def add(board: Board, warming: Warming) -> int:
    """Put it on the board; its number. Master only."""
    number = int(board.raw.warmings)
    raw = board.raw.warming[_place(number)]
    raw.at_ms = 0
    pages = dict(warming.pages)
    for index, source in enumerate(SOURCES):
        raw.pages[index] = pages.get(source, 0)
    raw.requests = warming.requests
    raw.busy_ms = int(warming.seconds * 1000)
    raw.grew = warming.grew
    raw.total_pss = warming.total_pss
    raw.grown_before = raw.grown_after = raw.verdict = 0
    raw.at_ms = lib.cow_now_ms()
    board.raw.warmings = number + 1
    return number


def judge(board: Board, number: int, confirmed: bool, before: int, after: int) -> None:
    """What the first replaced worker grew by tells of it. Master only.

    Args:
        before, after: bytes, of the old worker and of the new one.
    """
    raw = board.raw.warming[_place(number)]
    raw.grown_before, raw.grown_after = before, after
    raw.verdict = 1 if confirmed else 2


def read(board: Board) -> list[Warming]:
    """The start's, then what is kept of the later ones, oldest first."""
    many, now = int(board.raw.warmings), int(lib.cow_now_ms())
    kept = range(max(1, many - (lib.COW_WARMINGS - 1)), many)
    found = []
    for number in (*range(min(many, 1)), *kept):
        raw = board.raw.warming[_place(number)]
        if not raw.at_ms:  # just being written
            continue
        pages = zip(SOURCES, raw.pages, strict=True)
        found.append(
            Warming(
                pages=tuple((source, int(each)) for source, each in pages if each),
                requests=int(raw.requests),
                seconds=raw.busy_ms / 1000,
                grew=int(raw.grew),
                total_pss=int(raw.total_pss),
                grown_before=int(raw.grown_before),
                grown_after=int(raw.grown_after),
                verdict=_VERDICTS[raw.verdict] if raw.verdict < 3 else "",
                age=max(0, now - raw.at_ms) / 1000,
            )
        )
    return found
