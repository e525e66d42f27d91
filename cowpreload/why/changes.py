"""What was written on one private page: the worker's bytes against the master's.

Takes both processes' memory, heap and objects; gives Evidence. What cannot be named
without knowing who points at it (storage of containers, memory of C) is left as Plain
for `owners`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cowpreload._core import ffi, lib
from cowpreload._offsets import Offsets
from cowpreload.causes import SAME, Cause
from cowpreload.why.code import was_cold
from cowpreload.why.evidence import Evidence, Plain
from cowpreload.why.fields import cause_of, is_container
from cowpreload.why.heap import Block, Heap, Place, Pool
from cowpreload.why.objects import BYTES, UNICODE, Kind, Objects
from cowpreload.why.process import PAGE, Memory

KEYS = "keys of dicts"
_LONGEST = 1 << 16  # units of a function that are looked at


class Process:
    """One side of the comparison."""

    def __init__(self, memory: Memory, heap: Heap, objects: Objects) -> None:
        self.memory, self.heap, self.objects = memory, heap, objects


class Changes:
    """Compares pages of a worker with those of its master.

    Args:
        collected: full collections ran in the worker over a heap that is not frozen.
    """

    def __init__(
        self, ours: Process, theirs: Process, offsets: Offsets, collected: bool
    ) -> None:
        self._ours, self._theirs = ours, theirs
        self._offsets, self._collected = offsets, collected
        self._out = ffi.new("uint16_t[]", PAGE // 8)

    def page(self, address: int) -> Evidence:
        """Compare one page that both processes have."""
        evidence = Evidence(address)
        mine = self._ours.memory.page(address)
        count = lib.cow_words_changed(
            ffi.from_buffer("uint64_t[]", mine),
            ffi.from_buffer("uint64_t[]", self._theirs.memory.page(address)),
            PAGE // 8,
            self._out,
        )
        place = self._ours.heap.place(address)
        if count == 0:
            self._unchanged(evidence, place)
        elif place is None:
            self._outside(evidence, ffi.unpack(self._out, count))
        else:
            self._on_heap(evidence, place, ffi.unpack(self._out, count))
        return evidence

    def young(self, page: int, place: Place | None) -> str:
        """What the worker has on a page that held nothing of the master's."""
        if not isinstance(place, Pool):
            return "malloc" if place else ""
        kinds: Counter[str] = Counter()
        for block in place.blocks(page):
            if block.used:
                found = self._ours.objects.in_block(block.start, block.size)
                kinds[found[1].label if found else "memory of no object"] += 1
        top = kinds.most_common(1)
        return f"objects: {top[0][0]}" if top else "free pools"

    def _on_heap(
        self, evidence: Evidence, place: Place, changed: Sequence[int]
    ) -> None:
        before = self._theirs.heap.place(evidence.page)
        if before and not any(each.used for each in before.blocks(evidence.page)):
            evidence.add(Cause.NEW, self.young(evidence.page, place))
            return
        block: Block | None = None
        offsets: list[int] = []
        for word in changed:
            at = evidence.page + word * 8
            if block is not None and at < block.start + block.size:
                offsets.append(at - block.start)
                continue
            if block is not None:
                self._block(evidence, block, before, offsets)
            block = place.block(at)
            if block is None:
                evidence.add(Cause.ALLOCATOR, "headers of pools and chunks")
            offsets = [at - block.start] if block else []
        if block is not None:
            self._block(evidence, block, before, offsets)

    def _block(
        self,
        evidence: Evidence,
        block: Block,
        before: Place | None,
        offsets: list[int],
    ) -> None:
        then = before.block(block.start) if before else None
        was_used = bool(
            then and then.used and then.start == block.start and then.size == block.size
        )
        if not block.used:
            label = "freed" if was_used else "free: used for a while"
            evidence.add(Cause.ALLOCATOR, f"slots {label}")
            return
        found = self._ours.objects.in_block(block.start, block.size)
        if found is None:
            if not was_used or self._theirs.objects.in_block(block.start, block.size):
                evidence.add(Cause.ALLOCATOR, "slots filled: memory of no object")
            else:
                evidence.plain.append(Plain(block.start, tuple(offsets), False))
            return
        address, kind = found
        if not was_used or not self._same(address, kind):
            evidence.add(Cause.ALLOCATOR, f"slots filled: {kind.label}")
            return
        self._object(evidence, address, kind, offsets, address - block.start)

    def _same(self, address: int, kind: Kind) -> bool:
        """Whether the master has an object of that type there, alive."""
        memory = self._theirs.memory
        return memory.word(
            address + 8
        ) == kind.address and self._theirs.objects.counted(address)

    def _object(
        self,
        evidence: Evidence,
        address: int,
        kind: Kind,
        offsets: list[int],
        head: int,
    ) -> None:
        causes = {
            None
            if cause is Cause.HASH and self._is_text(address, kind, offset)
            else cause
            for offset, cause in (
                (offset - head, cause_of(kind, offset - head, self._offsets))
                for offset in offsets
            )
        }
        if None in causes and kind.flags & BYTES and self._is_large(address):
            # From 3.15 on a bytearray keeps its items in a bytes, as BytesIO does: what
            # points at it says what was written.
            evidence.plain.append(Plain(address - head, tuple(offsets), False))
            return
        if None in causes:
            evidence.add(Cause.ALLOCATOR, f"slots filled: {kind.label}")
            return
        for cause in causes:
            assert cause is not None
            if cause is Cause.SPECIALIZATION and kind.label == "code":
                self._code(evidence, address, [at - head for at in offsets])
                continue
            evidence.add(cause, self._label(cause, address, kind))
            if cause is Cause.STORAGE and is_container(kind):
                evidence.containers[address] += 1

    def _code(self, evidence: Evidence, code: int, offsets: list[int]) -> None:
        """Code that first ran after the fork, or counters of code that had run."""
        known, objects = self._offsets, self._ours.objects
        start = known.code_adaptive
        cause = Cause.SPECIALIZATION
        # What changed before the instructions is a version, or a count of calls that
        # ends when they are made ready to specialize.
        if all(at >= start - 7 for at in offsets):
            size = 2 * min(self._ours.memory.word(code + known.code_size), _LONGEST)
            mine, before = (
                bytes(each.memory.read(code + start, size))
                for each in (self._ours, self._theirs)
            )
            here = (
                unit
                for at in offsets
                for unit in range(max(0, at - start), at - start + 8, 2)
            )
            changed = {at for at in here if mine[at : at + 2] != before[at : at + 2]}
            if not was_cold(before, changed):
                cause = Cause.COUNTERS
        label = objects.function_name(code)
        evidence.add(cause, label)
        if objects.is_generated(code):
            evidence.codes[code] = (cause, label)

    def _is_large(self, address: int) -> bool:
        """Whether no pool is around it: another object of its size in its place, which
        is how a slot is filled, is not to be expected."""
        return not isinstance(self._ours.heap.place(address), Pool)

    def _is_text(self, address: int, kind: Kind, offset: int) -> bool:
        """Whether that offset of a str is text and not its UTF-8 pointer."""
        if not kind.flags & UNICODE or offset < self._offsets.str_ascii_data:
            return False
        state = self._ours.memory.word(address + self._offsets.str_state)
        return bool(state >> 6 & 1)

    def _label(self, cause: Cause, address: int, kind: Kind) -> str:
        if cause is Cause.SPECIALIZATION:
            code = address
            if kind.label == "function":
                code = self._ours.memory.word(address + self._offsets.function_code)
            if kind.label in ("function", "code"):
                return self._ours.objects.function_name(code)
        if cause is Cause.INTERPRETER:
            return "types' caches" if not kind.flags & UNICODE else "interned strings"
        return kind.label

    def _outside(self, evidence: Evidence, changed: Sequence[int]) -> None:
        """A page of a file's data: counts of static objects, else the file's own."""
        others = []
        for word in changed:
            at = evidence.page + word * 8
            kind = self._ours.objects.at(at)
            if kind is not None and self._same(at, kind):
                evidence.add(Cause.REFCOUNT, kind.label)
            else:
                others.append(at)
        if others:
            evidence.plain.append(Plain(others[0], (0,), True, len(others)))

    def _unchanged(self, evidence: Evidence, place: Place | None) -> None:
        """A page with the master's bytes: something was written and written back.

        What can do that, the most certain first: a full collection writes to every
        container that is not frozen; counts go up and down again. Where all objects
        are immortal there remain the counts of dict keys, which nobody can make
        immortal, and the counters in code, which return to where they began. (Such
        pages of a worker were read again and again under load: what moved were the
        first word of keys and the inline caches of code.)
        A page with none of these is not explained: its other owners may have gone.
        """
        objects = self._ours.objects
        counted: Counter[str] = Counter()
        collected: Counter[str] = Counter()
        code = 0
        for address, kind in self._objects_on(evidence.page, place):
            if kind.label == "code":
                code += 1  # its counters may be far behind its count
                if address - kind.header + 40 < evidence.page:
                    continue
            if objects.mortal(address):
                counted[kind.label] += 1
            if self._collected and kind.header and self._tracked(address):
                collected[kind.label] += 1
        for cause, found in (
            (Cause.COLLECTOR, collected),
            (Cause.REFCOUNT, counted),
        ):
            if found:
                evidence.add(cause, f"{SAME}: {found.most_common(1)[0][0]}")
                return
        if place is None:
            evidence.plain.append(Plain(evidence.page, (0,), True))
            return
        keys = sum(
            objects.are_keys(each.start, each.size)
            for each in place.blocks(evidence.page)
            if each.used and each.start >= evidence.page
        )
        if keys:
            evidence.add(Cause.REFCOUNT, f"{SAME}: {KEYS}", keys)
        if code:
            evidence.add(Cause.COUNTERS, f"{SAME}: code", code)
        if not keys and not code:
            evidence.add(Cause.UNEXPLAINED, "the master's bytes, nothing counted there")

    def _tracked(self, address: int) -> bool:
        """Whether the collector knows a container: dicts of strings it leaves out."""
        return self._ours.memory.word(address - 16) != 0

    def _objects_on(self, page: int, place: Place | None) -> list[tuple[int, Kind]]:
        objects = self._ours.objects
        if place is not None:
            found = (
                objects.in_block(each.start, each.size)
                for each in place.blocks(page)
                if each.used
            )
            return [
                each
                for each in found
                if each
                and (page <= each[0] - each[1].header + 40 or each[1].label == "code")
            ]
        found_at = ((at, objects.at(at)) for at in range(page, page + PAGE - 8, 8))
        return [(at, kind) for at, kind in found_at if kind is not None]
