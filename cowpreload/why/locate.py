"""Which worker a pid is: its master, its slot if it is ours, and its Python.

A worker of ours has a board that says all that. Any other forked process that runs
the same binary as this command can be read too: addresses are shifted by where it is
mapped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from cowpreload import _offsets, pids
from cowpreload._offsets import Offsets, Python
from cowpreload.board import Board, open_board
from cowpreload.errors import NativeError, NotFoundError, WhyError
from cowpreload.why.process import Mapping, mappings, parent


@dataclass(frozen=True)
class Worker:
    """A process to examine.

    Attributes:
        master: what it was forked from; 0: no parent to compare with.
        slot: on the board; 0: it is not ours.
    """

    pid: int
    master: int
    board: Board | None
    slot: int


def locate(pid: int) -> Worker:
    """Find the worker's board, slot and master.

    Raises:
        WhyError: it cannot be read, or is a master.
    """
    mappings(pid)
    try:
        board = open_board(pid, writable=True)
    except (NotFoundError, NativeError, OSError):
        return Worker(pid, _forked_from(pid), None, 0)
    master = board.seen(board.master_pid)
    if master == pid:
        raise WhyError(
            f"pid={pid}: is the master; name a worker, see cowpreload status"
        )
    slot = next((each.slot for each in board if each.pid == pids.own(pid)), 0)
    return Worker(pid, master, board, slot)


def _forked_from(pid: int) -> int:
    """The parent, if `pid` is a fork of it that has not started another program."""
    master = parent(pid)
    try:
        ours, theirs = mappings(pid), mappings(master)
    except WhyError:
        return 0

    def ends(maps: list[Mapping]) -> tuple[tuple[int, str], int]:
        """Where the program is mapped and where its stack ends: not changed by a fork,
        and random for a program that is started."""
        stack = next((each.end for each in maps if each.path == "[stack]"), 0)
        return (maps[0].start, maps[0].path), stack

    return master if theirs and ends(theirs) == ends(ours) else 0


def python_in(worker: Worker) -> tuple[Offsets, Python] | None:
    """How to read the worker's objects; None if it runs another Python than this."""
    own = _offsets.own()
    if own is None:
        return None
    offsets, python = own
    if worker.board is not None:
        theirs = _offsets.python_of(worker.board.raw.python)
        return (offsets, theirs) if _offsets.fits(python, theirs) else None
    return _same_binary(offsets, python, worker.pid)


def _same_binary(
    offsets: Offsets, python: Python, pid: int
) -> tuple[Offsets, Python] | None:
    """Where this interpreter's binary is mapped in a process that has no board."""
    ours = mappings(os.getpid())
    home = next(each for each in ours if each.start <= python.type_type < each.end)
    if not home.inode:
        return None

    def base(maps: list[Mapping]) -> int:
        return next(
            (m.start for m in maps if (m.inode, m.path) == (home.inode, home.path)), 0
        )

    moved = base(mappings(pid))
    if not moved:
        return None
    shift = moved - base(ours)
    return offsets, Python(
        python.version,
        python.build,
        python.type_type + shift,
        python.collector + shift,
    )
