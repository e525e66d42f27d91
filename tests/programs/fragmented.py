"""A heap full of holes, and a worker that allocates; prints figures as JSON.

Argument: on (sealed) or off. `private` is what the child copied or took for `young`
bytes of new objects; `free_blocks` and `free_chunks` are the holes left, as pymalloc
and glibc count them.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

import cowpreload
from cowpreload import _core


class Small:
    pass


class Mallinfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = (
        *((f"field_{i}", ctypes.c_size_t) for i in range(8)),
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    )


def free_chunks() -> int:
    """Bytes in free chunks below the last one."""
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = Mallinfo
    found = ask()
    return int(found.fordblks - found.keepcost)


def free_blocks() -> int:
    """Free slots in used pools. CPython prints them to descriptor 2 alone."""
    shown, kept = os.memfd_create("stats"), os.dup(2)
    os.dup2(shown, 2)
    sys._debugmallocstats()
    os.dup2(kept, 2)
    os.lseek(shown, 0, os.SEEK_SET)
    # 3.15's own buffer is 128 KiB, and would be a free chunk afterwards.
    with os.fdopen(shown, buffering=8192) as file:
        rows = [line.split() for line in file]
    return sum(int(row[4]) for row in rows if len(row) == 5 and row[0].isdigit())


holed = [bytes(size) for _ in range(8000) for size in (40, 200, 600, 3000, 700)]
holed += [bytes(20_000) for _ in range(200)]
huge = [bytes(90_000) for _ in range(30)]
small = [Small() for _ in range(100_000)]
for each in small:
    each.held = object()  # type: ignore[attr-defined]
del holed[::2], huge[::3], small[::16]
before = _core.take_reading().rss
report = cowpreload.freeze(seal=sys.argv[1])
figures = {
    "sealed": vars(report.sealed),
    "free_blocks": free_blocks(),
    "free_chunks": free_chunks(),
    "master_grew": _core.take_reading().rss - before,
}
child = os.fork()
if child == 0:
    start = _core.take_reading().private
    young = [Small() for _ in range(5000)]
    more = [bytes(size) for _ in range(1000) for size in (600, 700, 3000)]
    figures["young"] = sum(map(sys.getsizeof, [*young, *more]))
    figures["private"] = _core.take_reading().private - start
    print(json.dumps(figures), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
os._exit(status)
