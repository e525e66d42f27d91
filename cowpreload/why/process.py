"""One process as /proc shows it: mappings, page maps, bytes. Reads, never writes.

Addresses are integers, words are 8 bytes. What cannot be read is zero; a process that
has ended or is another user's raises.
"""

from __future__ import annotations

import array
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cowpreload.errors import WhyError
from cowpreload.texts import printable, proc_lines

PAGE = os.sysconf("SC_PAGE_SIZE")
# Bits of a pagemap entry (Documentation/admin-guide/mm/pagemap.rst).
PRESENT, SWAPPED, FILE, EXCLUSIVE = 1 << 63, 1 << 62, 1 << 61, 1 << 56
_GUARD = 1 << 58  # no page, but marked as swapped too
_PIECE = 1 << 20
BLOCK = 16384  # bytes read at once; what pymalloc calls a pool
_KEPT = 8192  # blocks kept: 128 MiB at most


@dataclass(frozen=True)
class Mapping:
    """One line of /proc/PID/maps."""

    start: int
    end: int
    access: str
    offset: int
    inode: int
    path: str

    @property
    def writable(self) -> bool:
        return self.access[1] == "w"

    @property
    def readable(self) -> bool:
        return self.access[0] == "r"

    @property
    def name(self) -> str:
        """The file's name, [heap] and the like, or "anonymous"."""
        return self.path.rpartition("/")[2] or "anonymous"


def mappings(pid: int) -> list[Mapping]:
    """All mappings of `pid`, by address.

    Raises:
        WhyError: there is no such process, or it is another user's.
    """
    try:
        lines = proc_lines(f"/proc/{pid}/maps")
    except OSError as error:
        raise _unreadable(pid, "mappings", error) from error
    if not any(lines):
        raise WhyError(
            f"pid={pid}: has ended, or is a kernel thread; name a worker, see "
            "cowpreload status"
        )
    found = []
    for line in lines:
        fields = line.split(" ", 5)
        start, _, end = fields[0].partition("-")
        path = fields[5].lstrip(" ") if len(fields) > 5 else ""
        found.append(
            Mapping(
                int(start, 16),
                int(end, 16),
                fields[1],
                int(fields[2], 16),
                int(fields[4]),
                path,
            )
        )
    return found


def _unreadable(pid: int, what: str, error: OSError) -> WhyError:
    """The error for a process that cannot be read, and what to do."""
    if not Path(f"/proc/{pid}").exists():
        return WhyError(
            f"pid={pid}: there is no such process; name a worker, see cowpreload status"
        )
    return WhyError(
        f"pid={pid}: its {what} cannot be read ({error.strerror}); run as the "
        "process's user; where kernel.yama.ptrace_scope is not 0, or the server "
        "changed its user, run as root"
    )


def parent(pid: int) -> int:
    """The parent's pid; 0 if the process is gone."""
    try:
        (line,) = proc_lines(f"/proc/{pid}/stat")
    except OSError:
        return 0
    return int(line.rpartition(")")[2].split()[1])


def page_flags(pid: int, mapping: Mapping) -> Iterator[tuple[int, int]]:
    """(address, pagemap entry) of each page of `mapping` that is present or swapped.

    Raises:
        WhyError: the process has ended, or is another user's.
    """
    try:
        fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(pid, "page map", error) from error
    try:
        at, last = mapping.start // PAGE * 8, mapping.end // PAGE * 8
        while at < last:
            try:
                text = os.pread(fd, min(_PIECE, last - at), at)
            except OSError:
                return
            if not text:
                return
            if text.count(0) < len(text):
                page = at // 8 * PAGE
                for entry in array.array("Q", text):
                    if entry >= SWAPPED and not entry & _GUARD:
                        yield page, entry
                    page += PAGE
            at += len(text)
    finally:
        os.close(fd)


class Memory:
    """The bytes of a process.

    Args:
        named: the pid that errors name, if another: `pid` may be a still copy.

    Raises:
        WhyError: they may not be read.
    """

    def __init__(self, pid: int, named: int = 0) -> None:
        self.pid = named or pid
        try:
            self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise _unreadable(pid, "memory", error) from error
        self._blocks: dict[int, memoryview] = {}

    def close(self) -> None:
        os.close(self._fd)

    def ended(self, address: int) -> bool:
        """Whether the process is gone; `address` is one that it could read."""
        try:
            return not os.pread(self._fd, 1, address)
        except OSError:
            return True

    def read(self, address: int, size: int) -> bytearray:
        """`size` bytes; zeros where there is nothing to read.

        A read stops at the first page that cannot be read, and at 0x7ffff000 bytes; it
        gives nothing, without an error, when the process has ended.

        Raises:
            WhyError: the process has ended.
        """
        found = bytearray(size)
        room, at = memoryview(found), 0
        while at < size:
            try:
                count = os.preadv(self._fd, [room[at:]], address + at)
            except (OSError, OverflowError):
                at += PAGE - (address + at) % PAGE
                continue
            if not count:
                raise WhyError(f"pid={self.pid}: ended while it was read; try again")
            at += count
        return found

    def words(self, address: int) -> memoryview:
        """The aligned 16 KiB around `address`, as words."""
        base = address & -BLOCK
        block = self._blocks.get(base)
        if block is None:
            if len(self._blocks) >= _KEPT:
                self._blocks.clear()
            block = memoryview(self.read(base, BLOCK)).cast("Q")
            self._blocks[base] = block
        return block

    def word(self, address: int) -> int:
        """The word at `address`, a multiple of 8."""
        block = self._blocks.get(address & -BLOCK)
        if block is None:
            block = self.words(address)
        found: int = block[(address & (BLOCK - 1)) >> 3]
        return found

    def page(self, address: int) -> memoryview:
        """The words of the page at `address`."""
        start = (address & (BLOCK - 1)) >> 3
        return self.words(address)[start : start + PAGE // 8]

    def text(self, address: int, most: int = 200) -> str:
        """The C string at `address`, printable."""
        found = self.read(address, most).split(b"\0", 1)[0]
        return printable(found.decode("utf-8", "replace"))
