"""Move the heap, work, move it again; or, with "limited", under ulimit -v.

Prints how many files the heap is mapped from, and what the last move says.
"""

from __future__ import annotations

import gc
import resource
import sys

from cowpreload import healing
from cowpreload.settings import Settings

healing.begin(Settings(merge="self"))
HEAP = [[str(i), {i: str(i)}] for i in range(20_000)]


def files() -> int:
    """How many different ones are mapped to be written to."""
    with open("/proc/self/maps") as lines:
        parts = [line.split() for line in lines if "cowpreload-heap" in line]
    return len({each[4] for each in parts if each[1] == "rw-p"})


if __name__ == "__main__":
    gc.freeze()
    if sys.argv[1:] == ["limited"]:
        with open("/proc/self/statm") as text:
            size = int(text.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + 2_000_000,) * 2)
        report = healing.move()
    else:
        for _ in range(4):
            # What was written is freed, and is zero when it is moved the next time.
            written = [b"\1" * 70_000 for _ in range(150)]
            del written
            kept = [bytearray(70_000) for _ in range(150)]
            report = healing.move()
            del kept
            assert report.bytes, report
    print(files(), report.line())
