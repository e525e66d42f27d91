"""What of a process's memory is offered to the kernel for merging."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload import _core, merging
from cowpreload._core import ffi, lib
from cowpreload.merging import MergeReport

# A file, a page that is read alone, a heap, a name of an allocator's, a stack, shared
# memory, a guard page.
MAPS = b"""\
55d0c0a00000-55d0c0a01000 rw-p 00002000 fe:00 4455       /usr/bin/python3.13
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0          [heap]
7f00a0000000-7f00a0100000 r--p 00000000 00:00 0
7f00a0100000-7f00a0200000 rw-p 00000000 00:00 0
7f00a0200000-7f00a0300000 rw-p 00000000 00:00 0          [anon: glibc: malloc]
7f00a0300000-7f00a0400000 rw-s 00000000 00:01 77         /memfd:cowpreload-board
7f00a0400000-7f00a0500000 rw-s 00000000 00:01 78         /dev/zero (deleted)
7f00a0500000-7f00a0600000 ---p 00000000 00:00 0
7ffd1e000000-7ffd1e021000 rw-p 00000000 00:00 0          [stack]
7ffd1e0f0000-7ffd1e0f4000 r--p 00000000 00:00 0          [vvar]
"""


def wants(line: bytes) -> tuple[int, int] | None:
    """From where to where the memory of a line is offered."""
    start, end = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    taken = lib.cow_merge_wants(line, len(line), start, end)
    return (start[0], end[0]) if taken else None


def test_a_heap_is_offered_and_no_stack_file_or_shared_memory() -> None:
    offered = [wants(line) for line in MAPS.splitlines()]
    assert [each for each in offered if each] == [
        (0x55D0C1000000, 0x55D0C1021000),
        (0x7F00A0100000, 0x7F00A0200000),
        (0x7F00A0200000, 0x7F00A0300000),
    ]


@given(st.binary(max_size=120))
def test_no_text_is_read_beyond_its_end(line: bytes) -> None:
    wants(line)


NAMES = st.text(string.ascii_letters + "/:[] .", max_size=30)
PLAIN = re.compile(rb"[0-9a-f]+-[0-9a-f]+ rw.p \S+ \S+ 0 *(|\[heap\]|\[anon:.*)")


@given(st.integers(0, 2**47), st.integers(1, 2**30), st.sampled_from(["", "12"]), NAMES)
@pytest.mark.parametrize("access", ["rw-p", "rwxp", "rw-s", "r--p", "-w-p", "---p"])
def test_every_line_that_the_kernel_writes_is_told(
    access: str, start: int, size: int, inode: str, name: str
) -> None:
    line = f"{start:x}-{start + size:x} {access} 00001000 00:00 {inode or 0} {name}"
    found = wants(line.encode())
    expected = bool(PLAIN.fullmatch(line.encode().rstrip())) or (
        # Spaces alone are no name.
        access in ("rw-p", "rwxp") and not inode and not name.strip(" ")
    )
    assert (found is not None) == expected
    assert found in (None, (start, start + size))


def test_all_that_is_allocated_is_offered() -> None:
    kept = [bytearray(1 << 20) for _ in range(8)]
    assert _core.offer_to_merge() > sum(map(len, kept))


@pytest.mark.parametrize(
    ("run", "why_not"),
    [("1\n", ""), ("0\n", "as root, on the host: echo 1 > "), (None, "has no KSM")],
)
def test_what_the_machine_lacks_is_said_with_what_to_do(
    tmp_path: Path, run: str | None, why_not: str
) -> None:
    if run is not None:
        (tmp_path / "run").write_text(run)
    report = merging.offer(tmp_path)
    assert report.bytes
    assert why_not in report.why_not
    assert bool(report.why_not) == bool(why_not)


def test_a_line_says_what_is_offered_and_why_nothing_is_merged() -> None:
    assert MergeReport(236 << 20).line() == "cow: merge=kernel offered=236MiB"
    assert MergeReport(1 << 20, "x").line() == (
        "cow: merge=kernel offered=1MiB: nothing is merged: x"
    )
    assert MergeReport(why_not="x").line() == "cow: merge=off: x"
