"""The inner loops of the report against plain Python."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from cowpreload._core import ffi, lib

WORDS = st.lists(st.sampled_from([0, 1, 8, 4096, 5000, 8191, 1 << 40]), max_size=64)


def array(values: list[int]) -> object:
    return ffi.new("uint64_t[]", values)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=64))
def test_changed_words_are_found(pairs: list[tuple[int, int]]) -> None:
    out = ffi.new("uint16_t[]", 64)
    count = lib.cow_words_changed(
        array([a for a, _ in pairs]), array([b for _, b in pairs]), len(pairs), out
    )
    wanted = [i for i, (a, b) in enumerate(pairs) if a != b]
    assert ffi.unpack(out, count) == wanted if count else not wanted


@given(WORDS, st.sets(st.integers(0, 9), max_size=5), st.integers(1, 7))
def test_pointers_into_ranges_are_found_piece_by_piece(
    words: list[int], starts: set[int], most: int
) -> None:
    ranges = [(start * 1000, start * 1000 + 500) for start in sorted(starts)]
    raw = ffi.new("struct cow_range[]", len(ranges) + 1)
    for number, (start, end) in enumerate(ranges):
        raw[number].start, raw[number].end = start, end
    bits = ffi.new("uint8_t[]", lib.COW_FILTER_BITS // 8)
    lib.cow_words_filter(raw, len(ranges), bits)
    out, after = ffi.new("struct cow_found[]", most), ffi.new("size_t *")
    found = []
    while after[0] < len(words):
        count = lib.cow_words_find(
            array(words), len(words), 64, raw, len(ranges), bits, out, most, after
        )
        found += [(out[i].at, out[i].word, out[i].range) for i in range(count)]
    assert found == [
        (64 + i * 8, word, number)
        for i, word in enumerate(words)
        for number, (start, end) in enumerate(ranges)
        if start <= word < end
    ]


@given(st.lists(st.sampled_from([32, 48, 4096]), max_size=20), st.integers(1, 5))
def test_chunks_are_walked_to_the_end(sizes: list[int], most: int) -> None:
    heap = b"".join(struct.pack("QQ", 0, size | 1).ljust(size, b"x") for size in sizes)
    out, after = ffi.new("uint64_t[]", most), ffi.new("size_t *")
    found: list[int] = []
    while after[0] < len(heap):
        count = lib.cow_words_chunks(
            ffi.from_buffer(heap), len(heap), after[0], out, most, after
        )
        found += ffi.unpack(out, count)
    assert found == [sum(sizes[:number]) for number in range(len(sizes))]


@given(st.binary(max_size=200))
def test_a_broken_heap_ends_the_walk(text: bytes) -> None:
    out, after = ffi.new("uint64_t[]", 64), ffi.new("size_t *")
    count = lib.cow_words_chunks(ffi.from_buffer(text), len(text), 0, out, 64, after)
    assert count <= 64
    assert after[0] == len(text)
