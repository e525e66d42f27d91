"""The board: the one piece of memory that all processes of a server share.

The master creates it before the first fork and gives out slots; workers post to
theirs (watch.py); `open_board` lets another process of the same user read it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cowpreload import _core, _offsets
from cowpreload._core import check, ffi, lib
from cowpreload.errors import NativeError, NotFoundError
from cowpreload.records import SlotView

_LINK = "memfd:cowpreload-board"


class Board:
    """A mapped board. `raw` is the C struct, for watch.py and the hosts."""

    def __init__(self, raw: Any, fd: int = -1) -> None:
        self.raw = raw
        self.fd = fd

    @classmethod
    def create(cls) -> Board:
        """Make the board of this server, mode 0600, shared with all later forks."""
        raw, fd = ffi.new("struct cow_board **"), ffi.new("int *")
        check(lib.cow_board_create(raw, fd))
        raw[0].master_pid = os.getpid()
        known = _offsets.own()
        if known:  # so that a report finds its way
            raw[0].python = asdict(known[1])
        return cls(raw[0], fd[0])

    def reserve(self) -> int:
        """Give the lowest free slot, booting; 0 if the board is full. Master only."""
        slot = int(lib.cow_slot_find(self.raw))
        if slot:
            check(lib.cow_slot_boot(self.raw, slot, 0))
        return slot

    def free(self, slot: int) -> None:
        """The worker of `slot` is gone. Master only."""
        check(lib.cow_slot_free(self.raw, slot))

    def end_line(self, slot: int) -> str:
        """The log line of the slot's last recycling, once; else empty. Master only."""
        line = ffi.new("char[256]")
        length = lib.cow_end_line(self.raw, slot, line, 256)
        return bytes(ffi.buffer(line, length)).decode()

    def view(self, slot: int) -> SlotView:
        """Copy one slot (1 ..)."""
        return _core.slot_view(self.raw, slot)

    def __iter__(self) -> Iterator[SlotView]:
        """All slots that hold a worker."""
        for slot in range(1, self.raw.slots + 1):
            if self.raw.slot[slot - 1].life.state:
                yield self.view(slot)

    @property
    def master_pid(self) -> int:
        return int(self.raw.master_pid)


def slot_faults(name: str, workers: int) -> list[str]:
    """The fault of a host's setting `name` that asks for more workers than slots."""
    if workers <= _core.SLOTS:
        return []
    return [
        f"{name}={workers}: the board has {_core.SLOTS} slots; "
        "start fewer workers or a second server"
    ]


def _genuine(process: Path, link: Path) -> bool:
    """Whether a descriptor is a board that its process, or root, made.

    Anybody can give a file of his that name, for root's `status` to find.
    """
    if not os.readlink(link).startswith(f"/{_LINK}"):
        return False
    about = link.stat()  # of the file, not of the link
    owners = {0, process.stat().st_uid}
    return stat.S_ISREG(about.st_mode) and about.st_uid in owners


def _board_links(pid: str) -> Iterator[Path]:
    process = Path("/proc", pid)
    try:
        links = list((process / "fd").iterdir())
    except OSError:
        return  # not ours, or gone
    for link in links:
        with contextlib.suppress(OSError):
            if _genuine(process, link):
                yield link


def open_board(pid: int, *, writable: bool = False) -> Board:
    """Map the board that process `pid` holds; read-only, unless a report must ask.

    Raises:
        NotFoundError: it holds none, or is another user's.
        NativeError: the board was made by another version, or is none.
    """
    for link in _board_links(str(pid)):
        access = os.O_RDWR if writable else os.O_RDONLY
        fd = os.open(link, access | os.O_CLOEXEC)
        try:
            raw = ffi.new("struct cow_board **")
            check(lib.cow_board_open(fd, writable, raw))
        finally:
            os.close(fd)
        return Board(raw[0])
    raise NotFoundError(f"pid={pid}: holds no board; give the pid of a cow master")


def _files(pid: int) -> set[tuple[int, int]]:
    """What identifies the boards that a process holds."""
    found = set()
    for link in _board_links(str(pid)):
        with contextlib.suppress(OSError):
            about = link.stat()
            found.add((about.st_dev, about.st_ino))
    return found


def find_masters() -> list[int]:
    """The masters of all servers of this user that have a board, lowest pid first.

    A board names its master: one that does not hold the same board is no master.
    """
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (files := _files(int(entry.name))):
            try:
                master = open_board(int(entry.name)).master_pid
            except (NotFoundError, NativeError, OSError):
                continue
            if files & _files(master):
                found.add(master)
    return sorted(found)


def only_master(advice: str) -> int:
    """The master of the only server; `advice` is what to do where there are more.

    Raises:
        NotFoundError: there is none, or more than one.
    """
    masters = find_masters()
    if not masters:
        raise NotFoundError(
            "pid: none found; start a server with a cow worker class or the uWSGI "
            "plugin, or run this as the server's user"
        )
    if len(masters) > 1:
        found = ", ".join(map(str, masters))
        raise NotFoundError(f"pid: masters {found} found; {advice}")
    return masters[0]
