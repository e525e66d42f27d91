"""Servers: from the boards of running servers, and /proc, to views of them.

Takes a board, or finds all of this user's; gives a ServerView of each. Reads only, and
takes nothing from the servers but the time that the kernel needs for a reading (20 ms a
GiB). A process that cannot be read is shown with what the board has of it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from cowpreload import _core, about, freezes, pids, warmings
from cowpreload._core import ffi, lib
from cowpreload.board import Board, find_masters, open_board
from cowpreload.capacity import capacity
from cowpreload.errors import NativeError, NotFoundError
from cowpreload.records import Reading
from cowpreload.slots import by_reason, ever_served
from cowpreload.texts import printable
from cowpreload.view import (
    Counts,
    MasterView,
    ServerView,
    SlotView,
    Totals,
    total,
)

# While a report holds a still copy of a worker, the pages that both share are missing
# in every reading: the board's last one is true.
_COPIED = (lib.COW_STILL_GO, lib.COW_STILL_HELD)


def running(older_than: float = 0.0) -> list[ServerView]:
    """All servers of this user, by their masters' pids; as `look`."""
    found = []
    for pid in find_masters():
        try:
            found.append(look_at(pid, older_than))
        except (NotFoundError, NativeError):
            continue  # it ended meanwhile
    return found


def look_at(pid: int, older_than: float = 0.0) -> ServerView:
    """The server whose board process `pid` holds; as `look`.

    Raises:
        NotFoundError, NativeError: as open_board.
    """
    try:
        board = open_board(pid)
    except OSError as error:  # it has ended between two steps
        raise NotFoundError(f"pid={pid}: {error.strerror}") from error
    try:
        return look(board, older_than)
    finally:
        board.close()


def look(board: Board, older_than: float = 0.0) -> ServerView:
    """View one server, whose board is open.

    Args:
        older_than: a worker's figures on the board are up to 30 s old; where they are
            older than this many seconds, the worker is read now.
    """
    master = _master(board)
    read = set[int]()  # a board may name one large process a thousand times
    slots = tuple(_slot(board, each, older_than, read) for each in board)
    room = capacity(master.pid or "self")
    return ServerView(
        at=time.time(),
        master=master,
        slots=slots,
        counts=_counts(board),
        totals=_totals(board, total(master, slots, room.limit, room.source, room.used)),
        note=pid_note(board),
    )


def _read(board: Board, pid: int) -> Reading | None:
    if pid <= 0 or not board.is_theirs(pid):  # 0 would be this process
        return None
    try:
        return _core.take_reading(pid)
    except NativeError:
        return None


def _master(board: Board) -> MasterView:
    raw = board.raw
    view = MasterView(
        pid=board.seen(board.master_pid),
        host=printable(ffi.string(raw.host, len(raw.host)).decode("utf-8", "replace")),
        application=about.read(board).application,
        age=max(0, lib.cow_now_ms() - raw.made_at_ms) / 1000,
        frozen=freezes.read(board),
        warmings=tuple(warmings.read(board)),
    )
    reading = _read(board, view.pid)
    return view if reading is None else replace(view, **vars(reading))


def _slot(board: Board, view: SlotView, older_than: float, read: set[int]) -> SlotView:
    known = view.pid  # 0: the slot is taken, and the worker not forked yet
    view = replace(view, pid=board.seen(known) if known else 0)
    copied = board.raw.slot[view.slot - 1].still.state in _COPIED
    if copied or (view.read_age and view.read_age <= older_than):
        return view
    reading = None if view.pid in read else _read(board, view.pid)
    read.add(view.pid)
    if reading is not None:
        grown = max(0, reading.private - view.ready_private) if view.ready_age else 0
        return replace(view, **vars(reading), grown=grown, read_age=0.0)
    if known and not (view.pid and Path(f"/proc/{view.pid}").exists()):
        return replace(view, state="gone")
    return view


def _totals(board: Board, totals: Totals) -> Totals:
    """With the budget, if there is one, and the sum that is held against it."""
    if not board.raw.whole.budget:
        return totals
    found = ffi.new("struct cow_sum *")
    lib.cow_budget_sum(board.raw, lib.cow_now_ms(), found)
    return replace(totals, budget=found.budget, counted=found.total, share=found.share)


def _counts(board: Board) -> Counts:
    raw, counts = board.raw, board.raw.counts
    rows = raw.slot[0 : len(board.slots())]
    return Counts(
        recycled=by_reason(counts.ends[lib.COW_RECYCLE]),
        killed=by_reason(counts.ends[lib.COW_KILL]),
        unheeded=sum(counts.ends[lib.COW_ASK_AGAIN]),
        requests=sum(ever_served(each.life) for each in rows),
        readings=int(counts.readings),
        readings_failed=int(counts.readings_failed),
    )


def pid_note(board: Board) -> str:
    """What to say of a server in another pid namespace; empty for one in ours."""
    if not pids.is_inside(board.holder):
        return ""
    return (
        f"in a pid namespace of its own, where its master is {board.master_pid}; pids "
        "are shown as they are here, 0 where none is seen"
    )
