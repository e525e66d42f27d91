"""What threads leave in memory is told from memory of no known format."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Callable, Iterator

import pytest

from cowpreload.why.heap import ARENA, Chunks, Heap
from cowpreload.why.process import PAGE, Memory, mappings
from cowpreload.why.threads import THREAD_DATA, Threads

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]
LIBC.pthread_getattr_np.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
LIBC.pthread_attr_getstack.argtypes = [ctypes.c_void_p] * 3

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not hasattr(LIBC, "gnu_get_libc_version"),
    reason="the marks are those of glibc on x86-64",
)


@pytest.fixture
def memory() -> Iterator[Memory]:
    found = Memory(os.getpid())
    yield found
    found.close()


def in_thread(ask: Callable[[], object], look: Callable[[], None]) -> None:
    """Run `ask` in a thread, and `look` while the thread lives."""
    asked, looked = threading.Event(), threading.Event()

    def run() -> None:
        ask()
        asked.set()
        looked.wait(60)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert asked.wait(60)
        look()
    finally:
        looked.set()
        thread.join()


def stack_of_this_thread() -> tuple[int, int]:
    """Its start and size, as the C library says."""
    attributes = ctypes.create_string_buffer(256)
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert not LIBC.pthread_getattr_np(threading.get_ident(), attributes)
    LIBC.pthread_attr_getstack(attributes, ctypes.byref(start), ctypes.byref(size))
    return start.value or 0, size.value


def test_a_stack_is_known_without_a_guard_mapping(memory: Memory) -> None:
    """By the descriptor at its top alone, wherever its mapping begins."""
    told: list[tuple[int, int]] = []
    described: list[int] = []

    def ask() -> None:
        told.append(stack_of_this_thread())
        described.append(threading.get_ident())

    def look() -> None:
        (start, size), page = told[0], described[0] & -PAGE
        threads = Threads(memory)
        threads.find_stacks([page, page - PAGE])
        assert all(threads.in_stack(start + at) for at in (PAGE, size // 2, size - 1))
        assert not threads.in_stack(start + size)
        mapping = next(m for m in mappings(os.getpid()) if m.start <= page < m.end)
        assert threads.name(mapping, described[0]) == THREAD_DATA

    in_thread(ask, look)


def test_a_page_is_searched_once_however_many_of_its_words_changed(
    monkeypatch: pytest.MonkeyPatch, memory: Memory
) -> None:
    """A search for each word took 35 s of a report of 36 s."""
    area = ctypes.create_string_buffer(3 * PAGE)
    page = (ctypes.addressof(area) + PAGE) & -PAGE
    mapping = next(m for m in mappings(os.getpid()) if m.start <= page < m.end)
    threads, read = Threads(memory), []
    page_of = memory.page
    monkeypatch.setattr(memory, "page", lambda at: read.append(at) or page_of(at))
    assert not any(threads.name(mapping, at) for at in range(page, page + PAGE, 8))
    assert read == [page]


def test_memory_of_another_arena_than_the_main_one_is_known(memory: Memory) -> None:
    got: list[int] = []

    def look() -> None:
        found = Heap(memory, mappings(os.getpid()))
        for at in got:
            place = found.place(at)
            assert isinstance(place, Chunks)
            block = place.block(at + 50)
            assert block is not None
            assert (block.start, block.used) == (at, True)
            assert 96 <= block.size < 160  # the last word is the next chunk's

    in_thread(lambda: got.extend(LIBC.malloc(100) for _ in range(9)), look)
    heap = next(m for m in mappings(os.getpid()) if m.path == "[heap]")
    assert not any(heap.start <= at < heap.end for at in got)
    assert len({at // ARENA for at in got}) == 1
    for at in got:
        LIBC.free(at)


def test_a_chunk_with_a_mapping_of_its_own_is_known(memory: Memory) -> None:
    """glibc 2.42 and newer leave its header out of its size."""
    size = 40 << 20  # beyond what makes glibc take it from the heap
    at = LIBC.malloc(size)
    place = Heap(memory, mappings(os.getpid())).place(at + size // 2)
    assert place is not None
    block = place.block(at + size // 2)
    LIBC.free(at)
    assert block is not None
    assert block.start == at
    assert size <= block.size <= size + 2 * PAGE
