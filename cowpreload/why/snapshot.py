"""The page maps of a worker and its master at one moment.

Takes two pids; gives which pages of the worker are private, and which of them the
master has too. Needs no more than /proc; reads no bytes of memory.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass

from cowpreload import _core
from cowpreload.errors import NativeError
from cowpreload.why.process import (
    EXCLUSIVE,
    FILE,
    PRESENT,
    Mapping,
    mappings,
    page_flags,
)

_NOT_MEMORY = ("[vvar]", "[vdso]", "[vsyscall]", "[vvar_vclock]")
_GUARD = 64 * 1024  # the most that glibc puts below a thread's stack


@dataclass(frozen=True)
class Page:
    """A private page of the worker.

    Attributes:
        inherited: the master has a page at that address too.
        file: it is the page cache's, mapped by nobody else.
        swapped: it is on disk; whether others share it cannot be seen.
    """

    address: int
    inherited: bool
    file: bool
    swapped: bool


@dataclass(frozen=True)
class Snapshot:
    """All private pages of a worker, by mapping."""

    mappings: tuple[Mapping, ...]
    master: tuple[Mapping, ...]
    pages: dict[Mapping, tuple[Page, ...]]
    present: dict[Mapping, int]
    stacks: frozenset[int]  # starts of the mappings that are stacks
    kernel_private: int


def take(pid: int, master_pid: int) -> Snapshot:
    """Read the page maps; master_pid 0: there is none to compare with.

    Raises:
        WhyError: the worker cannot be read.
    """
    maps = mappings(pid)
    theirs = mappings(master_pid) if master_pid else []
    had = {
        page
        for mapping in theirs
        if mapping.path not in _NOT_MEMORY
        for page, _entry in page_flags(master_pid, mapping)
    }
    pages: dict[Mapping, tuple[Page, ...]] = {}
    present: dict[Mapping, int] = {}
    for mapping in maps:
        if mapping.path in _NOT_MEMORY:
            continue
        found, seen = [], 0
        for address, entry in page_flags(pid, mapping):
            seen += 1
            if entry & PRESENT and not entry & EXCLUSIVE:
                continue
            found.append(
                Page(address, address in had, bool(entry & FILE), not entry & PRESENT)
            )
        pages[mapping], present[mapping] = tuple(found), seen
    private = 0
    with contextlib.suppress(NativeError):
        reading = _core.take_reading(pid)
        private = reading.private + reading.evictable  # every page, as above
    return Snapshot(tuple(maps), tuple(theirs), pages, present, stacks(maps), private)


def stacks(maps: list[Mapping]) -> frozenset[int]:
    """Starts of the mappings that are stacks: the main one, and what glibc maps with a
    guard page below it for a thread."""
    found = {each.start for each in maps if each.path == "[stack]"}
    for below, above in itertools.pairwise(maps):
        guard = below.access.startswith("---") and below.end - below.start <= _GUARD
        plain = not above.inode and not above.path and above.writable
        if guard and plain and below.end == above.start:
            found.add(above.start)
    return frozenset(found)
