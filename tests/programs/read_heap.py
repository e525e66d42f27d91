"""Load a heap of many kinds of objects, freeze, fork, read all of it; print two sizes.

Argument: on, off, or unhashed (immortal, but strings are not hashed before). Output:
bytes of the heap, bytes that the child copied of it.
"""

from __future__ import annotations

import os
import sys

import cowpreload
from cowpreload import _core, freezing


class Plain:
    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"name {number}"


class Slotted:
    __slots__ = ("items",)

    def __init__(self, number: int) -> None:
        self.items = frozenset({f"a{number}", f"b{number}"})


before = _core.heap_size()
HEAP = [
    (Plain(i), Slotted(i), {f"key {i}": [float(i), str(i)]}, (f"x{i}", i << 40))
    for i in range(60_000)
]
if sys.argv[1] == "unhashed":
    freezing.freeze(lambda *what: _core.immortalize(*what, fill=0))
else:
    cowpreload.freeze("auto" if sys.argv[1] == "on" else "off")
heap = _core.heap_size() - before


def read_all() -> int:
    """Hold each object in a local variable, a list, an argument, a dict's key."""
    total = 0
    for plain, slotted, mapping, pair in HEAP:
        held = [plain.number, plain.name, slotted.items, *pair]
        total += len(held) + hash(pair[0]) % 2
        for key, values in mapping.items():
            held.append(key)
            total += len(values) + len({key: values})
        for item in slotted.items:
            held.append(item)
    return total


child = os.fork()
if child == 0:
    start = _core.take_reading().private
    read_all()
    print(heap, _core.take_reading().private - start, flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
os._exit(status)
