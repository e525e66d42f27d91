"""Memory of threads: their stacks, their data and the frames that they run.

Takes a process's memory; gives ranges, by the marks that glibc and CPython leave there.
A mapping does not say it: newer kernels need no guard mapping below a stack, and
neighbours of a stack become one mapping with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from cowpreload._core import ffi, lib
from cowpreload.why.process import PAGE, Mapping, Memory

FRAMES = "frames of running functions"
THREAD_DATA = "thread-local data"
_DESCRIPTOR = 0x900  # bytes of glibc's struct pthread, or a little more
_HUGEST = 1 << 34  # bytes of a stack


class Threads:
    """What is known of the threads of one process."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._data: dict[int, int] = {}
        self._stacks: list[tuple[int, int]] = []

    def find_stacks(self, pages: Iterable[int]) -> None:
        """Find the stacks whose descriptor is on one of these pages."""
        found = set()
        for page in pages:
            at = self._descriptor(page)
            stack = self._stack_of(at) if at else None
            if stack:
                found.add(stack)
        self._stacks = sorted(found)

    def in_stack(self, address: int) -> bool:
        """Whether the address is in one of the stacks that were found."""
        number = bisect_right(self._stacks, (address, 1 << 64)) - 1
        return number >= 0 and address < self._stacks[number][1]

    def name(self, mapping: Mapping, at: int) -> str:
        """What anonymous memory at `at` is, if it is a thread's; else empty."""
        if self._is_frames(mapping, at):
            return FRAMES
        return THREAD_DATA if self._descriptor(at & -PAGE) else ""

    def _descriptor(self, page: int) -> int:
        """The thread control block on a page, which points at itself twice; or 0."""
        if page not in self._data:
            words = ffi.from_buffer("uint64_t[]", self._memory.page(page))
            number = lib.cow_words_itself(words, PAGE // 8, page)
            self._data[page] = page + number * 8 if number < PAGE // 8 else 0
        return self._data[page]

    def _stack_of(self, descriptor: int) -> tuple[int, int] | None:
        """The range that the descriptor names as its stack: it lies at the top of it.

        Where in the descriptor differs by version: it is the one start and size whose
        range is around the descriptor. The main thread's has none.
        """
        words = memoryview(self._memory.read(descriptor, _DESCRIPTOR)).cast("Q")
        for number in range(len(words) - 1):
            start, size = words[number], words[number + 1]
            if (
                PAGE <= size < _HUGEST
                and not (start | size) % PAGE
                and start < descriptor < start + size
            ):
                return start, start + size
        return None

    def _is_frames(self, mapping: Mapping, at: int) -> bool:
        """Whether a chunk of a thread's data stack is around `at` (CPython 3.11 on).

        It is mapped by itself, 16 KiB or a power of two above, and begins with the
        chunk before it, its size, and how many words of it are used.
        """
        memory, page = self._memory, at & -PAGE
        for back in range(0, 4 * PAGE, PAGE):
            start = page - back
            if start < mapping.start:
                return False
            size, top = memory.word(start + 8), memory.word(start + 16)
            if size >= 4 * PAGE and not size & (size - 1) and top <= size // 8:
                return at < start + size <= mapping.end
        return False
