"""Reading a process: ranges with holes, and a process that ends."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cowpreload import pids
from cowpreload.errors import WhyError
from cowpreload.why.process import PAGE, Mapping, Memory, mappings, page_flags, parent

PAGES = 4000  # more than Python's limit of recursion


@pytest.fixture
def cat() -> Iterator[subprocess.Popen[bytes]]:
    """A program that has started: it answered."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"x")
        assert process.stdout.read(1) == b"x"
        yield process
        process.kill()


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@pytest.fixture
def memory() -> Iterator[Memory]:
    found = Memory(os.getpid())
    yield found
    found.close()


def test_a_range_without_memory_is_zeros(memory: Memory) -> None:
    assert not any(memory.read(PAGE // 2, PAGES * PAGE // 64))
    assert memory.read(1 << 62, PAGES * PAGE) == bytes(PAGES * PAGE)
    assert memory.read(1 << 63, 3 * PAGE) == bytes(3 * PAGE)


def test_what_lies_behind_a_hole_is_read(memory: Memory) -> None:
    """From the middle of a page on, over a page that is not there."""
    area = mmap.mmap(-1, 4 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.write(b"a" * 4 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    fixed_private_anonymous = 0x32
    hole = libc.mmap(
        ctypes.c_void_p(start + PAGE),
        ctypes.c_size_t(PAGE),
        0,
        fixed_private_anonymous,
        -1,
        ctypes.c_long(0),
    )
    assert hole == start + PAGE
    libc.munmap(ctypes.c_void_p(hole), ctypes.c_size_t(PAGE))
    found = memory.read(start + 5, 4 * PAGE - 5)
    assert found == b"a" * (PAGE - 5) + bytes(PAGE) + b"a" * 2 * PAGE


def test_a_process_that_ended_is_not_read_as_zeros(
    cat: subprocess.Popen[bytes],
) -> None:
    start = mappings(cat.pid)[0].start
    memory = Memory(cat.pid)
    try:
        assert memory.read(start, 4) == b"\x7fELF"
        assert not memory.ended(start)
        end(cat)
        with pytest.raises(WhyError, match=f"pid={cat.pid}: ended while"):
            memory.read(start, PAGES * PAGE)
        assert memory.ended(start)
    finally:
        memory.close()


def test_page_map_of_a_process_that_ended(cat: subprocess.Popen[bytes]) -> None:
    first: Mapping = mappings(cat.pid)[0]
    end(cat)
    with pytest.raises(WhyError, match=r"no such process; name a worker"):
        list(page_flags(cat.pid, first))


def test_a_guard_page_is_not_a_swapped_one() -> None:
    """glibc 2.42 and newer guard each thread's stack so, from Linux 6.13 on."""
    install = 102  # MADV_GUARD_INSTALL
    with mmap.mmap(-1, 4 * PAGE, flags=mmap.MAP_PRIVATE) as held:
        held[:] = bytes(4 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(held))
        try:
            held.madvise(install, PAGE, PAGE)
        except OSError as error:
            pytest.skip(f"no guard pages here: {error}")
        (mapping,) = (
            each for each in mappings(os.getpid()) if each.start <= start < each.end
        )
        pages = {page for page, _ in page_flags(os.getpid(), mapping)}
        own = {start + PAGE * number for number in range(4)}
        assert own - pages == {start + PAGE}


def test_a_zombie_has_no_mappings(cat: subprocess.Popen[bytes]) -> None:
    cat.kill()
    os.waitid(os.P_PID, cat.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(WhyError, match="has ended, or is a kernel thread"):
        mappings(cat.pid)


def test_a_file_of_any_name_is_one_mapping(tmp_path: Path) -> None:
    """A name that holds what ends a line, or is no UTF-8, ended root's `why`."""
    name = os.fsencode(tmp_path) + b"/a\r\x0c\x1c\xff\x1b[2J b"
    with open(name, "wb+") as file:
        file.truncate(PAGE)
        with mmap.mmap(file.fileno(), PAGE):
            (found,) = [each for each in mappings(os.getpid()) if "[2J b" in each.path]
    assert found.path.isprintable()
    assert found.path.endswith("/a???\ufffd?[2J b")


def test_a_process_of_any_name_has_its_parent_and_its_pid() -> None:
    """A name that is no UTF-8 ended `status`; one line of it could be another pid."""
    code = (
        "import ctypes, sys\n"
        "ctypes.CDLL(None).prctl(15, b'\\xff)\\rNSpid: 1 1')\n"
        "print('named', flush=True)\n"
        "sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as it:
        assert it.stdin
        assert it.stdout
        it.stdout.readline()
        assert parent(it.pid) == os.getpid()
        assert (pids.own(it.pid), pids.is_inside(it.pid)) == (it.pid, False)
        it.stdin.close()


def test_a_name_in_a_processes_memory_is_no_command_to_a_terminal(
    memory: Memory,
) -> None:
    name = ctypes.create_string_buffer(b"Cart\x1b[2J\nmine\xff")
    assert memory.text(ctypes.addressof(name)) == "Cart?[2J?mine\ufffd"
