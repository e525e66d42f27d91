"""A parent whose child breaks sharing in exactly one way: `breaks.py WAY`.

The parent prepares some megabytes for the way and forks; the child does it, then prints
its pid and waits until its input ends. `idle` does nothing, for comparison.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

COUNT = 50_000
KEPT: list[Any] = []


class Record:
    """An object with attributes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.other = None


class Slotted:
    """An object without a dict."""

    __slots__ = ("number", "other")

    def __init__(self, number: int) -> None:
        self.number = number
        self.other = None


def strings() -> list[str]:
    """Strings whose hash nobody has asked for, each its own object."""
    return [f"{number:064d}" for number in range(COUNT)]


def touch(data: list[str]) -> None:
    """Read, which counts references up and down again."""
    for each in data:
        len(each)


def keep(data: list[str]) -> None:
    """Hold a second reference to each."""
    increment = ctypes.pythonapi.Py_IncRef
    increment.argtypes = [ctypes.py_object]
    for each in data:
        increment(each)


def hash_all(data: list[str]) -> None:
    for each in data:
        hash(each)


def utf8_all(data: list[str]) -> None:
    """The UTF-8 form of a str that is not ASCII is kept beside it."""
    for each in data:
        ctypes.pythonapi.PyUnicode_AsUTF8(ctypes.py_object(each))


def lists() -> list[list[None]]:
    """Lists with room for one more item; naming their tables takes longest."""
    data = []
    for _ in range(COUNT // 2):
        each: list[None] = []
        for _ in range(5):
            each.append(None)
        data.append(each)
    return data


def append(data: list[list[None]]) -> None:
    for each in data:
        each.append(None)


def replace(data: list[dict[str, bool]]) -> None:
    for each in data:
        each["name"] = False


def set_attributes(data: list[Any]) -> None:
    for each in data:
        each.other = True


def holes() -> list[bytes]:
    """Objects with a free slot beside each."""
    data = [b"%096d" % number for number in range(COUNT)]
    del data[::2]
    return data


def free_pools() -> list[bytes]:
    """Pools without an object, in arenas that stay for the sake of one object each."""
    return [b"%096d" % number for number in range(2 * COUNT)][::5000]


def fill_pools(data: list[bytes]) -> None:
    KEPT.extend(b"%096d" % number for number in range(COUNT))


def fill(data: list[bytes]) -> None:
    KEPT.extend(b"%096d" % number for number in range(len(data) // 2))


def cold_code() -> list[Any]:
    """Code that has never run."""
    text = "for each in some:\n a = b + c\n" + " d = b.real\n" * 12
    return [compile(text, f"cold{number}", "exec") for number in range(COUNT // 4)]


def warm_code() -> list[Any]:
    """Code that has run often, and cannot specialize: complex numbers never do."""
    text = "\n".join(["value + value"] * 20)
    data = [compile(text, f"warm{number}", "exec") for number in range(COUNT // 8)]
    for _ in range(20):
        run_code(data)
    return data


def run_code(data: list[Any]) -> None:
    names = {"some": range(20), "b": 1, "c": 2, "value": 1j}
    for code in data:
        exec(code, names)


def buffer() -> Any:
    return ctypes.create_string_buffer(8 << 20)


def write(data: Any) -> None:
    ctypes.memset(data, 1, len(data))


def write_bytes(data: bytearray) -> None:
    for at in range(0, len(data), 4096):
        data[at] = 1


def c_heap() -> list[int]:
    """Memory of malloc that C alone knows."""
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    data = [malloc(64 * 1024) for _ in range(120)]
    for each in data:
        ctypes.memset(each, 2, 64 * 1024)
    return data


def write_heap(data: list[int]) -> None:
    for each in data:
        ctypes.memset(each, 1, 64 * 1024)


def map_new(data: None) -> None:
    new = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE)
    new.write(b"x" * len(new))
    KEPT.append(new)


def use_stack(data: None) -> None:
    """A thread that has used 4 MiB of its stack."""
    done, stay = threading.Event(), threading.Event()
    libc = ctypes.CDLL(None)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    depth = [0]

    def deeper(_a: int, _b: int) -> int:
        depth[0] += 1
        if depth[0] < 3000:
            libc.qsort(two, 2, 8, function)
        return 0

    two, function = (ctypes.c_long * 2)(1, 2), compare(deeper)

    def run() -> None:
        sys.setrecursionlimit(100_000)
        libc.qsort(two, 2, 8, function)
        done.set()
        stay.wait()

    threading.stack_size(64 << 20)
    threading.Thread(target=run, daemon=True).start()
    done.wait()


def intern(data: list[str]) -> None:
    for each in data:
        sys.intern(each)


WAYS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "idle": (strings, lambda data: None),
    "touch": (strings, touch),
    "keep": (strings, keep),
    "collect": (lambda: [[i] for i in range(COUNT)], lambda data: void(gc.collect())),
    "hash": (strings, hash_all),
    "utf8": (lambda: [f"{i:d}" + "é" * 40 for i in range(COUNT)], utf8_all),
    "append": (lists, append),
    "replace": (lambda: [{"name": True} for _ in range(COUNT // 2)], replace),
    "attributes": (lambda: [Record(1) for _ in range(COUNT)], set_attributes),
    "slots": (lambda: [Slotted(1) for _ in range(COUNT)], set_attributes),
    "fill": (holes, fill),
    "pools": (free_pools, fill_pools),
    "code": (cold_code, run_code),
    "counters": (warm_code, run_code),
    "buffer": (buffer, write),
    "bytearray": (lambda: bytearray(8 << 20), write_bytes),
    "malloc": (c_heap, write_heap),
    "map": (lambda: None, map_new),
    "stack": (lambda: None, use_stack),
    "intern": (strings, intern),
}


def void(value: object) -> None:
    """Forget a value."""


def main() -> None:
    prepare, act = WAYS[sys.argv[1]]
    data = prepare()
    if sys.argv[1] != "collect":
        gc.collect()
        gc.freeze()
    pid = os.fork()
    if pid == 0:
        act(data)
        os.write(1, b"%d\n" % os.getpid())
        os.read(0, 1)
        os._exit(0)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
