"""The board: the one piece of memory that all processes of a server share.

The master creates it before the first fork and gives out slots; workers post to
theirs (watch.py); `open_board` lets another process of the same user read it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cowpreload import _core, _offsets, pids, slots
from cowpreload._core import check, ffi, lib
from cowpreload.capacity import capacity
from cowpreload.errors import NativeError, NotFoundError
from cowpreload.lifecycle import NewWorker, Recycling
from cowpreload.view import SlotView

_LINK = "memfd:cowpreload-board"
_LOOK_SECONDS = 0.5
# What the master writes once, and readers know a board by.
_HEAD = ("magic", "revision", "slots", "master_pid", "made_at_ms")


class Board:
    """A mapped board. `raw` is the C struct, for watch.py and the hosts.

    Attributes:
        holder: the process that it was opened of, as we see it; 0: our own.
        owner: the user whose file it is; 0: root's, or our own.
        hidden: one log line, if no other process can see this board; else empty.
    """

    def __init__(
        self,
        raw: Any,
        fd: int = -1,
        holder: int = 0,
        why_hidden: str = "",
        owner: int = 0,
    ) -> None:
        self.raw = raw
        self.fd = fd
        self.holder, self.owner = holder, owner
        self._inside: dict[int, int] = {}  # our pids by theirs
        self._inside_at = 0.0
        self._head: dict[str, int] = {}
        self._highest = 0  # slot that was ever filled, as the master knows it
        self.hidden = why_hidden and (
            f"cow: no memfd ({why_hidden}): limits act, and no report can see the board"
        )

    @classmethod
    def create(cls, host: str = "") -> Board:
        """Make the board of this server, mode 0600, shared with all later forks.

        Args:
            host: the server's name and version, for reports.
        """
        raw, fd = ffi.new("struct cow_board **"), ffi.new("int *")
        check(lib.cow_board_create(raw, fd))
        hidden = os.strerror(ffi.errno) if fd[0] < 0 else ""
        raw[0].master_pid = os.getpid()
        raw[0].host = host.encode()[: ffi.sizeof(raw[0].host) - 1]
        found = capacity()
        folder = str(Path(found.source).parent).encode()
        if found.is_group and len(folder) < ffi.sizeof(raw[0].group.folder):
            raw[0].group.folder = folder
            raw[0].group.version = found.version
        known = _offsets.own()
        if known:  # so that a report finds its way
            raw[0].python = asdict(known[1])
        made = cls(raw[0], fd[0], why_hidden=hidden)
        made._head = {name: getattr(raw[0], name) for name in _HEAD}
        return made

    def restore(self) -> None:
        """Put back what the board says of its server. Master only, at its turns.

        A stray write of the application's, in any worker, hid the server from all
        reports. Each worker puts its own row back (native/own.h).
        """
        for name, value in self._head.items():
            if getattr(self.raw, name) != value:
                setattr(self.raw, name, value)
        lib.cow_ticket_drop_forged(self.raw, lib.cow_now_ms())
        # The rows do not tell it: their workers put them back one by one.
        if self._highest <= self.raw.highest <= _core.SLOTS:
            self._highest = self.raw.highest
        else:
            self.raw.highest = self._highest

    def reserve(self) -> int:
        """Give the lowest free slot, booting; 0 if the board is full. Master only."""
        # A slot that a forged one names would be taken before the free ones.
        lib.cow_ticket_drop_forged(self.raw, lib.cow_now_ms())
        slot = int(lib.cow_slot_find(self.raw))
        if slot:
            check(lib.cow_slot_boot(self.raw, slot, 0))
            self._highest = max(self._highest, slot)
        return slot

    def free(self, slot: int) -> None:
        """The worker of `slot` is gone. Master only."""
        check(lib.cow_slot_free(self.raw, slot))

    def fill_no_more(self) -> None:
        """Give back rights to leave that wait for a free slot's worker. Master only."""
        for slot in self.slots():
            if self.raw.slot[slot - 1].life.state == lib.COW_FREE:
                lib.cow_ticket_release(self.raw, slot)

    def take_end(self, slot: int) -> Recycling | None:
        """The last decision about the slot's worker, once. Master only."""
        return slots.take_end(self.raw, slot)

    def ready_worker(self, slot: int) -> NewWorker | None:
        """The worker of a slot that could serve at some time; None: it cannot yet."""
        return slots.ready_worker(self.raw, slot)

    def close(self) -> None:
        """Forget a board that `open_board` gave; nothing of it may be used after."""
        check(lib.cow_board_close(self.raw))

    def view(self, slot: int) -> SlotView:
        """Copy one slot (1 ..)."""
        return slots.slot_view(self.raw, slot)

    def __iter__(self) -> Iterator[SlotView]:
        """All slots that hold a worker."""
        for slot in self.slots():
            state = self.raw.slot[slot - 1].life.state
            if state in slots.STATES and state != lib.COW_FREE:
                yield self.view(slot)

    def slots(self) -> range:
        """The slots that were ever filled.

        Not as many as the board says, which its maker may change, or a stray write of
        the application's: the master looked for minutes.
        """
        return range(1, min(self.raw.highest, _core.SLOTS) + 1)

    @property
    def master_pid(self) -> int:
        """As the server sees it; `seen` gives it as we do."""
        return int(self.raw.master_pid)

    def seen(self, pid: int) -> int:
        """How we see the process that the server sees as `pid`; 0: not at all."""
        if not self.holder or not pids.is_inside(self.holder):
            return pid
        # For a thousand slots that name nobody, not a thousand looks at all processes.
        now = time.monotonic()
        if pid not in self._inside and now - self._inside_at > _LOOK_SECONDS:
            files = _files(self.holder)
            holders = (each for each in _processes() if files & _files(each))
            self._inside = {pids.own(each): each for each in holders}
            self._inside_at = now
        return self._inside.get(pid, 0)

    def is_theirs(self, pid: int) -> bool:
        """Whether a process that the board names may be one of its server's.

        A board of another user's may name any, and have root read it.
        """
        if self.owner == 0:
            return True
        try:
            user = os.stat(f"/proc/{pid}").st_uid
        except OSError:
            return False
        return user == self.owner or bool(_files(self.holder) & _files(pid))


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


def _open(process: Path, link: Path, access: int) -> int | None:
    """Open a board; None if it is none any more.

    Since it was found, its process may have put another file in its place: a FIFO that
    nobody writes to would have root's `status` wait.
    """
    pin = os.open(link, os.O_PATH | os.O_CLOEXEC)  # names a file and does not open it
    try:
        pinned = Path(f"/proc/self/fd/{pin}")
        if not _genuine(process, pinned):
            return None
        return os.open(pinned, access | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(pin)


def open_board(pid: int, *, writable: bool = False) -> Board:
    """Map the board that process `pid` holds; read-only, unless a report must ask.

    Raises:
        NotFoundError: it holds none, or is another user's.
        NativeError: the board was made by another version, or is none.
    """
    for link in _board_links(str(pid)):
        fd = _open(
            Path("/proc", str(pid)), link, os.O_RDWR if writable else os.O_RDONLY
        )
        if fd is None:
            continue
        try:
            raw = ffi.new("struct cow_board **")
            check(lib.cow_board_open(fd, writable, raw))
            owner = os.fstat(fd).st_uid
        finally:
            os.close(fd)
        return Board(raw[0], holder=pid, owner=owner)
    raise NotFoundError(f"pid={pid}: holds no board; give the pid of a cow master")


def _files(pid: int) -> set[tuple[int, int]]:
    """What identifies the boards that a process holds."""
    found = set()
    for link in _board_links(str(pid)):
        with contextlib.suppress(OSError):
            about = link.stat()
            found.add((about.st_dev, about.st_ino))
    return found


def _processes() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def find_masters() -> list[int]:
    """The masters of all servers of this user that have a board, lowest pid first.

    A board names its master: one that does not hold the same board is no master.
    """
    found: set[int] = set()
    known: set[tuple[int, int]] = set()  # the boards of these: workers hold them too
    for pid in _processes():
        files = _files(pid)
        if files <= known:
            continue
        try:
            board = open_board(pid)
        except (NotFoundError, NativeError, OSError):
            continue
        master = board.seen(board.master_pid)
        board.close()
        if files & _files(master):
            found.add(master)
            known |= files
    return sorted(found)


def of_other_versions() -> list[int]:
    """For each board of this user's that another version has made: a process of it."""
    found: dict[tuple[int, int], int] = {}
    for pid in _processes():
        for each in _files(pid) - found.keys():
            try:
                open_board(pid).close()
            except NativeError:
                found[each] = pid
            except (NotFoundError, OSError):
                continue
    return sorted(found.values())
