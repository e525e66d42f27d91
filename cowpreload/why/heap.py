"""The blocks of a process's heap: pymalloc's pools and glibc's chunks, used or free.

Takes a process's memory; gives, for a page, a Place that knows the block around each of
its addresses. Formats: Objects/obmalloc.c (a pool is 16 KiB with a header of 48 bytes)
and glibc's malloc/malloc.c (a chunk's size is the word before its memory).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple, Protocol

from cowpreload._core import ffi, lib
from cowpreload.why.process import PAGE, Mapping, Memory

POOL = 16384
ARENA = 64 << 20  # what a heap of an arena is aligned to
_POOL_HEADER = 48
_MMAPPED, _PREVIOUS_USED = 2, 1
_MOST = 1 << 16


class Block(NamedTuple):
    """One allocation, or the room for one. Made by the million: no dataclass."""

    start: int
    size: int
    used: bool


class Place(Protocol):
    """What a page belongs to."""

    def block(self, address: int) -> Block | None:
        """The block around `address`; None for the allocator's own words."""

    def blocks(self, page: int) -> list[Block]:
        """All blocks that touch the page."""


class Pool:
    """A pool of pymalloc: blocks of one size, and which are free."""

    def __init__(self, base: int, size: int, free: frozenset[int]) -> None:
        self.base, self.size, self._free = base, size, free
        self._count = (POOL - _POOL_HEADER) // size

    def _number(self, number: int) -> Block:
        start = self.base + _POOL_HEADER + number * self.size
        return Block(start, self.size, number not in self._free)

    def block(self, address: int) -> Block | None:
        number = (address - self.base - _POOL_HEADER) // self.size
        return self._number(number) if 0 <= number < self._count else None

    def blocks(self, page: int) -> list[Block]:
        offset = page - self.base - _POOL_HEADER
        first = max(0, offset // self.size)
        last = min(self._count - 1, (offset + PAGE - 1) // self.size)
        return [self._number(number) for number in range(first, last + 1)]


def read_pool(memory: Memory, address: int) -> Pool | None:
    """The pool around `address`, if its header is one."""
    base = address & -POOL
    words = memory.words(base)
    count, block = words[0] & 0xFFFFFFFF, words[1]
    klass, reach, most = words[4] >> 32, words[5] & 0xFFFFFFFF, words[5] >> 32
    size = (klass + 1) * 16
    if klass >= 32 or most != POOL - size or not _POOL_HEADER <= reach <= POOL:
        return None
    room = (POOL - _POOL_HEADER) // size
    if count > room or words[0] >> 32:
        return None
    # Never used: what lies beyond the reach.
    free = set(range((reach - _POOL_HEADER) // size, room))
    while block:
        number, rest = divmod(block - base - _POOL_HEADER, size)
        if rest or not 0 <= number < room or number in free:
            return None  # no pool, or one that is being changed
        free.add(number)
        block = memory.word(block)
    return Pool(base, size, frozenset(free))


class Chunks:
    """glibc's chunks between two addresses: a heap, or one mapped chunk."""

    def __init__(self, memory: Memory, starts: list[int], end: int) -> None:
        self._memory, self._starts, self._end = memory, starts, end

    def _number(self, number: int) -> Block:
        starts = self._starts
        start = starts[number]
        after = starts[number + 1] if number + 1 < len(starts) else self._end
        used = True
        if number + 1 < len(starts):
            used = bool(self._memory.word(after + 8) & _PREVIOUS_USED)
        elif not self._memory.word(start + 8) & _MMAPPED:
            used = False  # the top chunk
        return Block(start + 16, after - start - 16, used)

    def block(self, address: int) -> Block | None:
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self._end:
            return None
        found = self._number(number)
        return found if address >= found.start else None

    def blocks(self, page: int) -> list[Block]:
        first = max(0, bisect_right(self._starts, page) - 1)
        last = bisect_right(self._starts, page + PAGE - 1)
        return [self._number(number) for number in range(first, last)]


def _starts(text: bytearray, base: int, first: int) -> list[int]:
    """The addresses of chunks in a heap at `base`, from the offset `first` on."""
    out, after = ffi.new("uint64_t[]", _MOST), ffi.new("size_t *")
    starts: list[int] = []
    after[0] = first
    while after[0] < len(text):
        count = lib.cow_words_chunks(
            ffi.from_buffer(text), len(text), after[0], out, _MOST, after
        )
        starts += [base + each for each in ffi.unpack(out, count)]
    return starts


def read_chunks(memory: Memory, mapping: Mapping) -> Chunks:
    """The chunks of the main heap, `[heap]`."""
    text = memory.read(mapping.start, mapping.end - mapping.start)
    return Chunks(memory, _starts(text, mapping.start, 0), mapping.end)


def read_arena(memory: Memory, base: int, mapping: Mapping) -> Chunks | None:
    """The chunks of a heap of one of glibc's further arenas, which threads use.

    It begins at a multiple of 64 MiB with the address of its arena's state, the heap
    before it and its size. In the first heap of an arena the state follows; its size
    differs by version: the chunks begin where their chain ends with the heap.
    """
    state, before, size = (memory.word(base + at) for at in (0, 8, 16))
    if not 0 < size <= mapping.end - base or size % PAGE or before % ARENA:
        return None
    if not 0x20 <= state % ARENA <= 0x40:
        return None
    first = (0x800, 0xA00) if state - state % ARENA == base else (0x20, 0x50)
    text = memory.read(base, size)
    for offset in range(*first, 16):
        starts = _starts(text, base, offset)
        last = starts[-1]
        if len(starts) > 1 and last + (memory.word(last + 8) & ~15) == base + size:
            return Chunks(memory, starts, base + size)
    return None


class Heap:
    """All places of one process."""

    def __init__(self, memory: Memory, mappings: list[Mapping]) -> None:
        self._memory = memory
        self.mappings = mappings
        self._starts = [each.start for each in mappings]
        self._pools: dict[int, Pool | None] = {}
        self._chunks: dict[int, Chunks] = {}
        self._mapped: dict[int, list[Chunks]] = {}
        self._arenas: dict[int, Chunks | None] = {}

    def mapping(self, address: int) -> Mapping | None:
        """The mapping around `address`."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self.mappings[number].end:
            return None
        return self.mappings[number]

    def pool(self, address: int) -> Pool | None:
        """The pool around `address`."""
        base = address & -POOL
        if base not in self._pools:
            self._pools[base] = read_pool(self._memory, base)
        return self._pools[base]

    def place(self, address: int) -> Place | None:
        """What the page around `address` belongs to; None outside of the heap."""
        mapping = self.mapping(address)
        if mapping is None or not mapping.writable:
            return None
        if mapping.path == "[heap]":
            if mapping.start not in self._chunks:
                self._chunks[mapping.start] = read_chunks(self._memory, mapping)
            return self._chunks[mapping.start]
        if mapping.inode or mapping.path.startswith("["):
            return None
        arena = self._arena(mapping, address)
        if arena is not None:
            return arena
        base = address & -POOL
        if mapping.start <= base and base + POOL <= mapping.end:
            pool = self.pool(address)
            if pool is not None:
                return pool
        return self._mapped_chunk(mapping, address)

    def _arena(self, mapping: Mapping, address: int) -> Chunks | None:
        base = address & -ARENA
        if base < mapping.start:
            return None
        if base not in self._arenas:
            self._arenas[base] = read_arena(self._memory, base, mapping)
        found = self._arenas[base]
        return found if found is not None and address < found._end else None

    def _mapped_chunk(self, mapping: Mapping, address: int) -> Chunks | None:
        """The chunk with a mapping of its own, as glibc makes for a large one."""
        if mapping.start not in self._mapped:
            self._mapped[mapping.start] = self._find_mapped(mapping)
        found = self._mapped[mapping.start]
        number = bisect_right(found, address, key=lambda each: each._starts[0]) - 1
        return found[number] if number >= 0 and address < found[number]._end else None

    def _find_mapped(self, mapping: Mapping) -> list[Chunks]:
        found: list[Chunks] = []
        page = mapping.start
        while page < mapping.end:
            whole = not page % POOL and page + POOL <= mapping.end
            if whole and self.pool(page) is not None:
                page += POOL
                continue
            before, size = self._memory.word(page), self._memory.word(page + 8)
            length = size & ~7
            if not (length + 16) % PAGE:
                length += 16  # from 2.42 on its header is not counted
            if (
                before == 0
                and size & 7 == _MMAPPED
                and length
                and length % PAGE == 0
                and page + length <= mapping.end
            ):
                found.append(Chunks(self._memory, [page], page + length))
                page += length
            else:
                page += PAGE
        return found
