"""Move memory about at random, and hold the bound on private memory against smaps.

Arguments: a seed and a number of steps. Runs in a child of a process with a heap, as
workers do. Prints how many bounds were finite, or the steps that lead to a wrong one.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
import sys
import tempfile

from cowpreload import _core

PAGE = 4096
MIB = 1 << 20
HUGE = 2 * MIB
PRIVATE, SHARED, ANONYMOUS = mmap.MAP_PRIVATE, mmap.MAP_SHARED, mmap.MAP_ANONYMOUS
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
DONTNEED, FREE, HUGEPAGE, COLLAPSE = 4, 8, 14, 25
MAYMOVE = 1
UNKNOWN = 2**64 - 1
# A child that has just been forked copies pages, and ours are private then: what its
# own interpreter writes here. No counter of ours tells of it.
CHILD_WRITES = 2 * MIB

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
    ctypes.c_long,
]  # fmt: skip
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mremap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int,
]  # fmt: skip


class Moves:
    """The memory of one process, region by region, and what is done to it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.regions: list[tuple[int, int]] = []
        self.files: set[int] = set()  # also addresses that were one's once
        self.children: list[tuple[int, int]] = []
        self.said: list[str] = []

    def say(self, *what: object) -> None:
        self.said.append(" ".join(map(str, what)))

    def map(self, size: int, flags: int = PRIVATE | ANONYMOUS, fd: int = -1) -> int:
        at = libc.mmap(None, size, READ_WRITE, flags, fd, 0)
        assert at not in (None, UNKNOWN)
        self.regions.append((at, size))
        if flags != PRIVATE | ANONYMOUS:
            self.files.add(at)
        return int(at)

    def part(self) -> tuple[int, int]:
        """A part of some region, whole pages."""
        at, size = self.random.choice(self.regions)
        first = self.random.randrange(size // PAGE)
        pages = self.random.randint(1, size // PAGE - first)
        return at + first * PAGE, pages * PAGE

    def write_pages(self, at: int, size: int, step: int = 1) -> None:
        for page in range(at, at + size, PAGE * step):
            ctypes.memset(page, self.random.randrange(256), 1)

    # ---- one step each ----------------------------------------------------

    def grow(self) -> None:
        size = self.random.randint(16, 6 * 256) * PAGE
        at = self.map(size)
        if self.random.random() < 0.5:
            libc.madvise(at, size, HUGEPAGE)
        self.write_pages(at, size, self.random.choice((1, 1, 7)))
        self.say("grow", hex(at), size)

    def write(self) -> None:
        at, size = self.part()
        self.write_pages(at, size, self.random.choice((1, 3)))
        self.say("write", hex(at), size)

    def read(self) -> None:
        at, size = self.part()
        for page in range(at, at + size, PAGE):
            ctypes.string_at(page, 1)
        self.say("read", hex(at), size)

    def advise(self) -> None:
        at, size = self.part()
        advice = self.random.choice((DONTNEED, DONTNEED, FREE, HUGEPAGE, COLLAPSE))
        self.say("madvise", advice, hex(at), size, libc.madvise(at, size, advice))

    def unmap(self) -> None:
        if len(self.regions) > 2:
            at, size = self.regions.pop(self.random.randrange(len(self.regions)))
            libc.munmap(at, size)
            self.say("munmap", hex(at), size)

    def swap_places(self) -> None:
        """Shared pages are given back, and as many private huge ones come at once."""
        self.unmap()
        self.grow()

    def move(self) -> None:
        index = self.random.randrange(len(self.regions))
        at, size = self.regions[index]
        # A file is not longer than its mapping was, and ends with SIGBUS.
        most = size if at in self.files else 2 * size
        new = self.random.randint(1, most // PAGE) * PAGE
        moved = libc.mremap(at, size, new, MAYMOVE)
        if moved not in (None, UNKNOWN):
            self.regions[index] = (moved, new)
            if at in self.files:
                self.files.add(moved)
        self.say("mremap", hex(at), size, new)

    def map_file(self) -> None:
        with tempfile.TemporaryFile() as file:
            size = self.random.randint(4, 512) * PAGE
            file.write(b"x" * size)
            file.flush()
            at = self.map(size, self.random.choice((PRIVATE, SHARED)), file.fileno())
            ctypes.string_at(at, 1)
            self.say("map file", hex(at), size)

    def map_shared(self) -> None:
        size = self.random.randint(4, 512) * PAGE
        self.say("map shared", hex(self.map(size, SHARED | ANONYMOUS)), size)

    def fork(self) -> None:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        os.close(reader)
        self.children.append((pid, writer))
        self.say("fork", pid)

    def end_child(self) -> None:
        if self.children:
            index = self.random.randrange(len(self.children))
            pid, writer = self.children.pop(index)
            os.close(writer)
            os.kill(pid, signal.SIGKILL)  # others have the writing end, too
            os.waitpid(pid, 0)
            self.say("child ended", pid)


STEPS = (
    *[Moves.grow] * 3, *[Moves.write] * 5, Moves.read, *[Moves.advise] * 4,
    Moves.unmap, *[Moves.swap_places] * 2, Moves.move, Moves.map_file,
    Moves.map_shared, Moves.fork, *[Moves.end_child] * 2,
)  # fmt: skip


def child(moves: Moves, steps: int) -> int:
    """Check the bound after steps; readings in between, as limits call for them."""
    look = _core.Look()
    look.read()
    finite = 0
    for _ in range(steps):
        moves.random.choice(STEPS)(moves)
        if len(moves.children) > 2:
            moves.end_child()
        if moves.random.random() < 0.3:
            continue  # no look at all
        private = _core.take_reading().private
        bound = look.bound()
        finite += bound != UNKNOWN
        if private > bound + (CHILD_WRITES if moves.children else 0):
            tail = "\n".join(moves.said[-30:])
            print(f"private {private} > bound {bound} after\n{tail}")
            return 1
        if bound == UNKNOWN or moves.random.random() < 0.2:
            look.read()
            moves.say("reading", private, "bound", bound)
    while moves.children:
        moves.end_child()
    print(finite)
    return 0


def main() -> None:
    """Make the heap that is inherited, fork, move."""
    moves = Moves(int(sys.argv[1]))
    inherited = moves.map(24 * MIB)
    moves.write_pages(inherited, 24 * MIB)
    huge = moves.map(8 * MIB)
    libc.madvise(huge, 8 * MIB, HUGEPAGE)
    moves.write_pages(huge, 8 * MIB)
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            code = child(moves, int(sys.argv[2]))
        finally:
            sys.stdout.flush()
            os._exit(code)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    main()
