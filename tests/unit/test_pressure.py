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


@pytest.mark.parametrize("text", [STAT_V1, STAT_V2.replace(b"1000", b"0")])
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


# ---- is it short, and who leaves --------------------------------------------


def room(limit: int, left: int, high: int = MOST) -> Any:
    used = max(0, limit - left)
    return ffi.new("struct cow_room *", {"limit": limit, "high": high, "used": used})


def shortage(limit: int, left: int, stalled: int = 0, before: int = 0) -> int:
    return int(lib.cow_shortage(room(limit, left), stalled, before))


def test_memory_is_short_below_a_sixteenth_until_an_eighth_is_left() -> None:
    limit = 1600 * MIB
    assert shortage(limit, 100 * MIB) == lib.COW_ENOUGH
    assert shortage(limit, 99 * MIB) == lib.COW_SHORT
    assert shortage(limit, 199 * MIB, before=lib.COW_SHORT) == lib.COW_SHORT
    assert shortage(limit, 200 * MIB, before=lib.COW_SHORT) == lib.COW_ENOUGH
    # Of a large machine no more than a worker or two.
    assert shortage(1 << 40, 256 * MIB) == lib.COW_ENOUGH
    assert shortage(1 << 40, 255 * MIB) == lib.COW_SHORT
    # What slows all down comes before what kills.
    low = room(1600 * MIB, 840 * MIB, high=800 * MIB)
    assert lib.cow_shortage(low, 0, 0) == lib.COW_SHORT


def test_waiting_counts_only_where_little_is_left() -> None:
    """On a machine with room, it is another group that reclaims."""
    assert shortage(1600 * MIB, 399 * MIB, stalled=100) == lib.COW_STALLED
    assert shortage(1600 * MIB, 399 * MIB, stalled=99) == lib.COW_ENOUGH
    assert shortage(1600 * MIB, 400 * MIB, stalled=1000) == lib.COW_ENOUGH


def test_waiting_near_a_quarter_does_not_begin_at_every_second_look() -> None:
    """Each beginning had every worker take a reading."""
    before, seen = lib.COW_ENOUGH, []
    for left in [399, 401] * 3:
        before = shortage(1600 * MIB, left * MIB, 200, before)
        seen.append(before)
    assert seen == [lib.COW_STALLED] * 6
    assert shortage(1600 * MIB, 500 * MIB, 200, before) == lib.COW_ENOUGH


@given(*[st.integers(0, MOST)] * 4, st.integers(0, 2))
def test_what_is_not_known_is_not_short(
    limit: int, high: int, used: int, stalled: int, before: int
) -> None:
    given_ = ffi.new("struct cow_room *", {"limit": 0, "high": high, "used": used})
    assert lib.cow_shortage(given_, stalled, before) == lib.COW_ENOUGH
    given_.limit = limit
    assert lib.cow_shortage(given_, stalled, before) in (0, 1, 2)
    # A limit may come back: with none, the next look was in 139 years.
    assert 5 <= lib.cow_brink_nap_ms(given_, stalled) <= 1000


def worker(grown: int, ready: int = 8, idle: int = 1, slot: int = 1) -> Any:
    return ffi.new(
        "struct cow_grown *",
        {
            "private_bytes": (ready + grown) * MIB,
            "ready_private": ready * MIB,
            "idle": idle,
            "slot": slot,
        },
    )


def test_one_leaves_only_if_that_gives_something_back() -> None:
    assert lib.cow_gives_back(worker(8))
    assert not lib.cow_gives_back(worker(7))
    assert not lib.cow_gives_back(worker(30, ready=100))
    # A fresh one is as large.
    assert not lib.cow_gives_back(worker(0, ready=500))


WORKERS = st.builds(
    worker, st.integers(-8, 99), st.just(8), st.integers(0, 3), st.integers(1, 1024)
)


@given(st.lists(WORKERS, min_size=2, max_size=9, unique_by=lambda each: each.slot))
def test_all_workers_agree_on_which_of_them_leaves(workers: list[Any]) -> None:
    """Exactly one is before all others, an idle one if there is one."""
    first = [
        one
        for one in workers
        if not any(lib.cow_leaves_before(other, one) for other in workers)
    ]
    assert len(first) == 1
    assert first[0].idle or not any(each.idle for each in workers)


@given(st.integers(0, 100_000), st.integers(0, 60))
def test_a_slot_that_left_in_vain_waits_twice_as_long_up_to_an_hour(
    lifetime: int, pressed: int
) -> None:
    limits = ffi.new("struct cow_limits *", {"min_lifetime_ms": lifetime})
    spared = lib.cow_pressed_ms(limits, pressed)
    assert spared >= lifetime
    assert spared <= max(lifetime, 2 * 3_600_000)
    if pressed:
        assert spared >= min(3_600_000, 20_000)
        assert spared >= lib.cow_pressed_ms(limits, pressed - 1)


def test_an_hour_of_pressure_costs_a_slot_eight_workers() -> None:
    """At min-lifetime's default, if each grows at once by enough."""
    limits = ffi.new("struct cow_limits *", {"min_lifetime_ms": 10_000})
    at, times = 0, 0
    while (at := at + lib.cow_pressed_ms(limits, times)) <= 3_600_000:
        times += 1
    assert times == 8


@given(
    st.integers(1, 1 << 40),
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 30),
    st.integers(0, 1 << 20),
)
def test_the_brink_is_a_runaways_alone(
    limit: int, left: int, grown: int, speed: int, late: int
) -> None:
    here = room(limit, left)
    due = lib.cow_brink_due(here, grown, speed, late)
    if grown < limit // 8 or not speed:
        assert not due
    elif left <= speed * 25:
        assert due
    assert not lib.cow_brink_due(room(MOST, left), grown, speed, late)


def test_the_largest_is_not_killed_for_a_page_where_little_is_left() -> None:
    """In a group of 600 MiB with 9 left it was, and in one of 16 GiB with 250 left."""
    page = 4096 // 100  # bytes a millisecond: one between two looks
    assert not lib.cow_brink_due(room(600 * MIB, 9 * MIB), 200 * MIB, page, 0)
    assert not lib.cow_brink_due(room(16 << 30, 250 * MIB), 3 << 30, 1 << 20, 0)
    fast = (50 * MIB) // 1000
    assert lib.cow_brink_due(room(600 * MIB, 9 * MIB), 200 * MIB, fast, 0)
    assert lib.cow_brink_due(room(16 << 30, 250 * MIB), 3 << 30, 16 << 20, 0)


# ---- recorded trees ----------------------------------------------------------


def taken(folder: Path, version: int) -> Any:
    group = ffi.new("struct cow_group *")
    group.version = version
    group.folder = str(folder).encode()
    out = ffi.new("struct cow_room *")
    lib.cow_room_take(group, out)
    return group, out


def tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, text in files.items():
        (folder / name).write_bytes(text)
    return folder


V2 = {
    "memory.max": b"629145600\n",
    "memory.high": b"max\n",
    "memory.current": b"600000000\n",
    "memory.stat": STAT_V2,
    "memory.pressure": STALL,
    "memory.swap.max": b"0\n",
    "memory.swap.current": b"0\n",
}


def test_a_group_of_version_2_is_read_whole(tmp_path: Path) -> None:
    group, found = taken(tree(tmp_path, V2), 2)
    assert (found.limit, found.high) == (600 * MIB, MOST)
    assert found.used == 600_000_000 - 314_572_800 - 1000
    assert found.stalled_us == 1790
    assert not lib.cow_room_swaps(group)
    (tmp_path / "memory.high").write_text("500000000")
    assert taken(tmp_path, 2)[1].high == 500_000_000


def test_a_group_of_version_1_is_read_whole(tmp_path: Path) -> None:
    files = {
        "memory.limit_in_bytes": b"629145600\n",
        "memory.usage_in_bytes": b"600000000\n",
        "memory.stat": STAT_V1,
    }
    _, found = taken(tree(tmp_path, files), 1)
    assert (found.limit, found.used) == (600 * MIB, 600_000_000 - 314_572_800)


def test_a_group_full_of_names_that_were_looked_up_is_not_short(tmp_path: Path) -> None:
    """Of 64 MB, 54 MB were the kernel's entries for 400,000 names that do not exist; 40
    MB of memory were given at once."""
    limit, used, names = 67_108_864, 66_000_000, 54_562_816
    empty = b"inactive_file 0\nactive_file 4096\n"
    one = {
        "memory.limit_in_bytes": b"%d\n" % limit,
        "memory.usage_in_bytes": b"%d\n" % used,
        "memory.kmem.usage_in_bytes": b"%d\n" % names,
        "memory.stat": empty.replace(b"in", b"total_in").replace(b"\na", b"\ntotal_a"),
    }
    _, found = taken(tree(tmp_path, one), 1)
    # What the kernel needs for page tables is not told apart: some of it counts.
    assert found.used == used - 4096 - (names - limit // 32)
    assert lib.cow_shortage(found, 0, 0) == lib.COW_ENOUGH
    assert not lib.cow_brink_due(found, limit // 4, 50 << 10, 0)
    two = {
        "memory.max": b"%d\n" % limit,
        "memory.high": b"max\n",
        "memory.current": b"%d\n" % used,
        "memory.stat": empty + b"slab_reclaimable %d\n" % names,
    }
    _, found = taken(tree(tmp_path, two), 2)
    assert found.used == used - 4096 - names
    assert lib.cow_shortage(found, 0, 0) == lib.COW_ENOUGH


def test_a_group_that_is_gone_is_never_short(tmp_path: Path) -> None:
    _, found = taken(tmp_path / "gone", 2)
    assert found.limit == 0
    for name in ("memory.max", "memory.current"):
        folder = tree(tmp_path, V2)
        (folder / name).unlink()
        assert taken(folder, 2)[1].limit == 0


def test_without_a_group_it_is_the_machine() -> None:
    _, found = taken(Path(), 0)
    assert 0 < found.used < found.limit
