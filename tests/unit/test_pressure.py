"""Memory that runs short: what the kernel's texts say, of both versions of cgroups."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload._core import ffi, lib

MIB = 1 << 20
MOST = (1 << 64) - 1
# As Linux 6.18 writes them.
STAT_V1 = b"""cache 314572800
rss 104857600
inactive_anon 0
active_file 1048576
inactive_file 2097152
hierarchical_memory_limit 629145600
total_cache 314572800
total_inactive_file 300000000
total_active_file 14572800
total_unevictable 0
"""
STAT_V2 = b"""anon 104857600
file 314572800
file_mapped 4096
inactive_anon 99
inactive_file 300000000
active_file 14572800
slab_reclaimable 1000
"""
STALL = b"""some avg10=1.23 avg60=0.50 avg300=0.10 total=1790
full avg10=0.00 avg60=0.00 avg300=0.00 total=385
"""
MEMINFO = b"""MemTotal:       24684000 kB
MemFree:        19576000 kB
MemAvailable:   24072000 kB
"""


def parsed(parse: Any, text: bytes, count: int = 1) -> list[int] | None:
    """What a parser gives; None if it says that this is not its text."""
    out = [ffi.new("uint64_t *") for _ in range(count)]
    return [int(each[0]) for each in out] if not parse(text, len(text), *out) else None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (b"629145600\n", 600 * MIB),
        (b"0\n", 0),
        (b"max\n", MOST),
        (b"9223372036854771712\n", MOST),  # version 1, no limit
        (b"99999999999999999999999\n", MOST),
        (b"600", 600),
    ],
)
def test_a_size_is_a_figure_or_no_limit(text: bytes, size: int) -> None:
    assert parsed(lib.cow_size_parse, text) == [size]


@pytest.mark.parametrize("text", [b"", b"\n", b"ma", b"none\n", b"-1\n"])
def test_what_is_no_size_is_not_taken_for_one(text: bytes) -> None:
    assert parsed(lib.cow_size_parse, text) is None


@pytest.mark.parametrize("text", [STAT_V1, STAT_V2])
def test_pages_of_files_are_both_lists_of_the_whole_group(text: bytes) -> None:
    assert parsed(lib.cow_files_parse, text) == [314572800]
    assert parsed(lib.cow_files_parse, b"anon 3\n") is None


def test_a_stall_is_the_total_of_some() -> None:
    assert parsed(lib.cow_stall_parse, STALL) == [1790]
    assert parsed(lib.cow_stall_parse, STALL[STALL.index(b"full") :]) is None
    assert parsed(lib.cow_stall_parse, b"some avg10=0.00\nfull total=3\n") is None


def test_meminfo_needs_both_figures() -> None:
    assert parsed(lib.cow_meminfo_parse, MEMINFO, 2) == [24684000 << 10, 24072000 << 10]
    assert parsed(lib.cow_meminfo_parse, MEMINFO[:40], 2) is None


@pytest.mark.skipif(
    not Path("/proc/pressure/memory").exists(), reason="a kernel without PSI"
)
def test_this_machines_own_files_are_understood() -> None:
    assert parsed(lib.cow_stall_parse, Path("/proc/pressure/memory").read_bytes())
    found = parsed(lib.cow_meminfo_parse, Path("/proc/meminfo").read_bytes(), 2)
    assert found
    assert 0 < found[1] < found[0]


PARSERS = [
    (lib.cow_size_parse, 1),
    (lib.cow_files_parse, 1),
    (lib.cow_stall_parse, 1),
    (lib.cow_meminfo_parse, 2),
]
PIECES = st.sampled_from(
    [
        *(b"some ", b"total=", b" total=", b"\n", b" ", b"max", b"9" * 30, b"7"),
        *(b"MemTotal:", b"MemAvailable:", b"total_active_file ", b"active_file "),
        *(b"inactive_file ", b"total_inactive_file ", b"so", b"MemAv", b"\0"),
    ]
)


@given(st.one_of(st.binary(max_size=300), st.lists(PIECES).map(b"".join)))
def test_no_text_is_read_behind_its_end(text: bytes) -> None:
    """Digits that stand behind it change nothing."""
    page = mmap.PAGESIZE
    text = text[:page]
    with mmap.mmap(-1, 2 * page) as pages:
        base = ffi.from_buffer("char[]", pages)
        pages[page - len(text) : page] = text
        pages[page : page + 8] = b"99999999"  # would go on with a figure
        for parse, count in PARSERS:
            out = [ffi.new("uint64_t *") for _ in range(count)]
            code = parse(base + page - len(text), len(text), *out)
            again = parsed(parse, text, count)
            assert (None if code else [int(each[0]) for each in out]) == again
        ffi.release(base)


@given(
    st.integers(0, 1 << 70),
    st.integers(0, 1 << 70),
    st.text("abcdefgh_", min_size=1, max_size=9),
)
def test_figures_are_found_in_any_order_and_never_wrap(
    one: int, other: int, name: str
) -> None:
    lines = [f"x{name} 3", f"active_file {one}", f"inactive_file {other}"]
    for each in (lines, lines[::-1]):
        text = "\n".join(each).encode()
        wanted = min(min(one, MOST) + min(other, MOST), MOST)
        assert parsed(lib.cow_files_parse, text) == [wanted]
    text = f"{name}: 9\nMemTotal: {one} kB\nMemAvailable:{other} kB\n".encode()
    found = parsed(lib.cow_meminfo_parse, text, 2)
    assert found == [min(one * 1024, MOST), min(other * 1024, MOST)] or (
        max(one, other) > MOST // 1024
    )
