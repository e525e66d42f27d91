"""Whose a block of plain memory is: what points at it, and at that, up to a name.

Takes the worker's memory, which is searched word by word, once for each step away from
the blocks (0.3 s for 250 MB). Gives for each block the nearest thing with a name: a
module, a class, an object of C, a library's data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cowpreload._core import ffi, lib
from cowpreload.why.fields import is_container
from cowpreload.why.heap import Heap
from cowpreload.why.objects import DICT, LIST, TYPE, Kind, Objects
from cowpreload.why.process import Mapping as Piece
from cowpreload.why.process import Memory
from cowpreload.why.threads import Threads

STEPS = 4  # a table in a dict in an object's table in a module
_MOST = 1 << 15
_READ = 4 << 20
_INSIDE = 64  # pointers into one block that are looked at, of those not at its start
_PREFIX = 256  # bytes before the values of attributes, or a few more


@dataclass(frozen=True)
class Referrer:
    """What points at a block: the smaller `rank`, the more it says.

    Attributes:
        node: start of a plain block, or address of an object; 0 for static data.
        offset: of the pointer in the object.
        place: the file, of static data.
    """

    rank: int
    node: int
    kind: Kind | None
    offset: int
    at: int
    place: str = ""


class Owners:
    """What points at the blocks that it was asked for."""

    def __init__(
        self,
        memory: Memory,
        heap: Heap,
        objects: Objects,
        threads: Threads,
        pieces: Iterable[Piece],
    ) -> None:
        self._memory, self.heap, self.objects = memory, heap, objects
        self._threads = threads
        self._pieces = [
            each for each in pieces if each.writable and each.access[3] == "p"
        ]
        self.best: dict[int, Referrer] = {}

    def search(self, ranges: Mapping[int, int]) -> None:
        """Find the best referrer of each block (start -> size), and theirs in turn.

        The size of an object is 1: pointers into it are not pointers at it.
        """
        wanted = dict(ranges)
        for _step in range(STEPS):
            wanted = {at: size for at, size in wanted.items() if at not in self.best}
            if not wanted:
                return
            self._step(wanted)
            wanted = dict(self._next(wanted))

    def _next(self, found: Iterable[int]) -> Iterator[tuple[int, int]]:
        """What has no name of its own among the referrers of `found`."""
        for target in found:
            referrer = self.best.get(target)
            if referrer is None or not referrer.node:
                continue
            kind = referrer.kind
            if kind is None:
                block = self._block(referrer.node)
                yield referrer.node, block[1] if block else 1
            elif kind.flags & (DICT | LIST) or is_container(kind):
                yield referrer.node, 1

    def _block(self, address: int) -> tuple[int, int] | None:
        place = self.heap.place(address)
        block = place.block(address) if place else None
        return (block.start, block.size) if block and block.used else None

    def _step(self, wanted: Mapping[int, int]) -> None:
        starts = sorted(wanted)
        ranges = ffi.new("struct cow_range[]", len(starts))
        for number, start in enumerate(starts):
            ranges[number].start, ranges[number].end = start, start + wanted[start]
        bits = ffi.new("uint8_t[]", lib.COW_FILTER_BITS // 8)
        lib.cow_words_filter(ranges, len(starts), bits)
        out = ffi.new("struct cow_found[]", _MOST)
        after = ffi.new("size_t *")
        seen: dict[int, int] = {}
        for base, text in self._bytes():
            words = ffi.from_buffer("uint64_t[]", text)
            after[0] = 0
            while after[0] < len(words):
                count = lib.cow_words_find(
                    words,
                    len(words),
                    base,
                    ranges,
                    len(starts),
                    bits,
                    out,
                    _MOST,
                    after,
                )
                for number in range(count):
                    hit = out[number]
                    target = starts[hit.range]
                    held = self.best.get(target)
                    if held is not None and not held.rank:
                        continue
                    if hit.word != target:
                        seen[target] = seen.get(target, 0) + 1
                        if seen[target] > _INSIDE:
                            continue
                    self._weigh(target, hit.at, hit.word)

    def _bytes(self) -> Iterator[tuple[int, bytearray]]:
        for piece in self._pieces:
            for base in range(piece.start, piece.end, _READ):
                yield base, self._memory.read(base, min(_READ, piece.end - base))

    def _weigh(self, target: int, at: int, word: int) -> None:
        referrer = self._referrer(target, at, word)
        if referrer is None or referrer.node == target:
            return
        held = self.best.get(target)
        if held is None or referrer.rank < held.rank:
            self.best[target] = referrer

    def _referrer(self, target: int, at: int, word: int) -> Referrer | None:
        place = self.heap.place(at)
        if place is None:
            mapping = self.heap.mapping(at)
            if mapping is None:
                return None
            if mapping.path == "[stack]":
                return Referrer(9, 0, None, 0, at, "a running function")
            kind = self.objects.at(at - at % 16)
            return Referrer(7, 0, kind, 0, at, self.file_of(mapping, at))
        block = place.block(at)
        if block is None or not block.used:
            return None
        found = self.objects.in_block(block.start, block.size)
        inside = 3 if word != target else 0
        if found is None:
            return Referrer(4 + inside, block.start, None, at - block.start, at)
        address, kind = found
        offset = at - address
        if -16 <= offset < 16:
            return None  # lists of the collector; the type
        if offset < -16:
            # Values of attributes (3.11, 3.12) begin inside of their block, after a
            # byte for each. Further inside it is chance: half an address that was
            # overwritten can point into any large block.
            return Referrer(
                inside if word - target > _PREFIX else 0, address, kind, offset, at
            )
        rank = self._rank(kind, offset) + inside
        return Referrer(rank, address, kind, offset, at)

    def _rank(self, kind: Kind, offset: int) -> int:
        offsets = self.objects.offsets
        if kind.label == "function" and offset == offsets.function_code:
            return 0
        if kind.label == "module" or kind.flags & TYPE:
            return 0
        if kind.flags & DICT and offset in (offsets.dict_keys, offsets.dict_values):
            return 0
        return 0 if is_container(kind) else 2

    def file_of(self, mapping: Piece, at: int = 0) -> str:
        """What data outside of the heap, at address `at`, belongs to.

        The frames of running functions and thread-local data are recognized; .bss
        follows the .data of its file. Other anonymous memory has no name.
        """
        if at and not mapping.inode:
            name = self._threads.name(mapping, at)
            if name:
                return name
        while not mapping.inode and mapping.path == "":
            before = self.heap.mapping(mapping.start - 1)
            if before is None or not before.writable:
                break
            mapping = before
        return mapping.name
