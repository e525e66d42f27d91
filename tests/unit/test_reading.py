"""The kernel's text to numbers."""

import contextlib
import mmap
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload import _core
from cowpreload.errors import NativeError

RECORDED = Path(__file__).parent / "recorded"
ROLLUP = b"""55a31c68b000-7ffe2b4ad000 ---p 00000000 00:00 0                  [rollup]
Rss:                1716 kB
Pss:                 756 kB
Pss_Dirty:           112 kB
Shared_Clean:       1496 kB
Shared_Dirty:          8 kB
Private_Clean:       108 kB
Private_Dirty:       112 kB
Swap:                  4 kB
SwapPss:               1 kB
"""


def test_private_is_what_only_the_workers_end_gives_back() -> None:
    """What is clean the system takes when it needs it: shown apart."""
    reading = _core.parse_reading(ROLLUP)
    assert reading.private == (112 + 1) * 1024
    assert reading.evictable == 108 * 1024
    assert reading.shared == (1496 + 8) * 1024
    assert (reading.pss, reading.rss) == (756 * 1024, 1716 * 1024)


def test_of_shared_swapped_pages_a_process_counts_its_share() -> None:
    """Recorded on Linux 6.18: 8 MiB of its own and 32 MiB of four are swapped out."""
    reading = _core.parse_reading((RECORDED / "swapped.smaps_rollup").read_bytes())
    assert reading.private == 912 * 1024 + (8 << 20) + (32 << 20) // 4


def test_a_kernel_without_shares_of_swap_counts_all_of_it() -> None:
    old = b"".join(
        line for line in ROLLUP.splitlines(True) if not line.startswith(b"SwapPss")
    )
    assert _core.parse_reading(old).private == (112 + 4) * 1024


def test_smaps_is_summed_over_its_mappings() -> None:
    assert _core.parse_reading(ROLLUP * 3).private == 3 * (112 + 1) * 1024


def test_a_mapped_file_is_no_private_memory(tmp_path: Path) -> None:
    """It can be had again from the disk; a hard limit killed workers for it."""
    size = 32 << 20
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(b"x" * size)
        os.fsync(file.fileno())
    before = _core.take_reading()
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as at,
    ):
        assert sum(at[:: mmap.PAGESIZE]) > 0
        after = _core.take_reading()
    assert after.private - before.private < 2 << 20
    assert after.evictable - before.evictable > 30 << 20


def test_a_text_without_private_dirty_is_no_reading() -> None:
    with pytest.raises(NativeError, match="Private_Dirty"):
        _core.parse_reading(b"Rss: 5 kB\n")


def test_a_text_that_ends_in_a_number_is_no_reading() -> None:
    """Of `112 kB`, one digit was taken for all of it: no limit would have acted."""
    for cut in range(len("Private_Dirty:"), len("Private_Dirty:       112 kB\n")):
        with pytest.raises(NativeError, match="Private_Dirty"):
            _core.parse_reading(ROLLUP[: ROLLUP.index(b"Private_Dirty:") + cut])


@given(st.binary(max_size=3000))
def test_any_bytes_give_a_reading_or_an_error(text: bytes) -> None:
    with contextlib.suppress(NativeError):
        _core.parse_reading(text)


def test_statm_gives_the_resident_set() -> None:
    assert _core.parse_statm(b"1000 200 30 4 0 5 0\n", 4096) == (200 * 4096, 30 * 4096)
    with pytest.raises(NativeError):
        _core.parse_statm(b"1000", 4096)


def test_this_process_can_be_read() -> None:
    reading = _core.take_reading()
    assert 1 << 20 < reading.private < reading.rss
    assert abs(reading.private - _core.take_reading(os.getpid()).private) < 1 << 20


def test_smaps_agrees_with_the_rollup() -> None:
    own = _core.parse_reading(Path("/proc/self/smaps").read_bytes())
    assert abs(own.private - _core.take_reading().private) < 4 << 20
