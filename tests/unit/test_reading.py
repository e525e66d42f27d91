"""The kernel's text to numbers."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload import _core
from cowpreload.errors import NativeError

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


def test_private_counts_what_is_swapped_out() -> None:
    reading = _core.parse_reading(ROLLUP)
    assert reading.private == (108 + 112 + 4) * 1024
    assert reading.shared == (1496 + 8) * 1024
    assert (reading.pss, reading.rss) == (756 * 1024, 1716 * 1024)


def test_smaps_is_summed_over_its_mappings() -> None:
    assert _core.parse_reading(ROLLUP * 3).private == 3 * (108 + 112 + 4) * 1024


def test_a_text_without_private_dirty_is_no_reading() -> None:
    with pytest.raises(NativeError, match="Private_Dirty"):
        _core.parse_reading(b"Rss: 5 kB\n")


@given(st.binary(max_size=3000))
def test_any_bytes_give_a_reading_or_an_error(text: bytes) -> None:
    with contextlib.suppress(NativeError):
        _core.parse_reading(text)


def test_statm_gives_the_resident_set() -> None:
    assert _core.parse_statm(b"1000 200 30 4 0 5 0\n", 4096) == 200 * 4096
    with pytest.raises(NativeError):
        _core.parse_statm(b"1000", 4096)


def test_this_process_can_be_read() -> None:
    reading = _core.take_reading()
    assert 1 << 20 < reading.private < reading.rss
    assert abs(reading.private - _core.take_reading(os.getpid()).private) < 1 << 20


def test_smaps_agrees_with_the_rollup() -> None:
    own = _core.parse_reading(Path("/proc/self/smaps").read_bytes())
    assert abs(own.private - _core.take_reading().private) < 4 << 20
