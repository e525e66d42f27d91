"""The bound on private memory against the kernel's own figure, in real processes."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
from conftest import run

from cowpreload import _core

MOVES = str(Path(__file__).parent.parent / "programs" / "memory_moves.py")
STEPS = 120
MIB = 1 << 20


@pytest.mark.parametrize("seed", [1, 2, 6, 20])
def test_private_memory_never_passes_its_bound(seed: int) -> None:
    """Copies, huge pages, collapses, freed and moved memory, files, children."""
    done = run(MOVES, str(seed), str(STEPS))
    assert done.returncode == 0, done.stdout + done.stderr
    # Else every bound was "unknown", and nothing was tried.
    assert int(done.stdout) > STEPS // 3


def test_the_bound_is_close_where_pages_come_one_by_one() -> None:
    """Each look would read the whole memory if it were not."""
    look = _core.Look()
    private = look.read().private
    with mmap.mmap(-1, 16 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, 16 * MIB, mmap.PAGESIZE):
            memory[at] = 1
        # Huge pages that any process on this machine got meanwhile count, too.
        assert private + 16 * MIB <= look.bound() < private + 40 * MIB
    look.close()
