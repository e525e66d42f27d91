"""One process as /proc shows it: mappings, page maps, bytes. Reads, never writes.

Addresses are integers, words are 8 bytes. What cannot be read is zero; a process that
is gone or another user's raises once, when it is opened.
"""

from __future__ import annotations

import array
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cowpreload.errors import WhyError

PAGE = os.sysconf("SC_PAGE_SIZE")
# Bits of a pagemap entry (Documentation/admin-guide/mm/pagemap.rst).
PRESENT, SWAPPED, FILE, EXCLUSIVE = 1 << 63, 1 << 62, 1 << 61, 1 << 56
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
        text = Path(f"/proc/{pid}/maps").read_text()
    except OSError as error:
        raise WhyError(f"pid={pid}: {error.strerror}; {access_advice(pid)}") from error
    found = []
    for line in text.splitlines():
        fields = line.split(maxsplit=5)
        start, _, end = fields[0].partition("-")
        path = fields[5] if len(fields) > 5 else ""
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


def access_advice(pid: int) -> str:
    """What to do when a process cannot be read."""
    if not Path(f"/proc/{pid}").exists():
        return "there is no such process"
    return (
        "run as the process's user; where kernel.yama.ptrace_scope is not 0, or the "
        "server changed its user, run as root"
    )


def parent(pid: int) -> int:
    """The parent's pid; 0 if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def page_flags(pid: int, mapping: Mapping) -> Iterator[tuple[int, int]]:
    """(address, pagemap entry) of each page of `mapping` that is present or swapped."""
    fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
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
                    if entry >= SWAPPED:
                        yield page, entry
                    page += PAGE
            at += len(text)
    finally:
        os.close(fd)


class Memory:
    """The bytes of a process.

    Raises:
        WhyError: they may not be read.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise WhyError(
                f"pid={pid}: its memory cannot be read ({error.strerror}); "
                f"{access_advice(pid)}"
            ) from error
        self._blocks: dict[int, memoryview] = {}

    def close(self) -> None:
        os.close(self._fd)

    def ended(self, address: int) -> bool:
        """Whether the process is gone; `address` is one that it could read."""
        try:
            return not os.pread(self._fd, 1, address)
        except OSError:
            return True

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes; zeros where there is nothing to read."""
        try:
            text = os.pread(self._fd, size, address)
        except (OSError, OverflowError):
            text = b""
        if len(text) == size:
            return text
        if size <= PAGE:
            return text.ljust(size, b"\0")
        first = PAGE - address % PAGE
        return self.read(address, first) + self.read(address + first, size - first)

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
        """The C string at `address`."""
        return self.read(address, most).split(b"\0", 1)[0].decode("utf-8", "replace")
