"""A thread's heap full of holes, and a worker whose threads allocate; prints JSON.

Argument: on (sealed) or off. `private` is what the child copied or took for `young`
bytes that two threads of its own allocate: glibc gives them the heaps, arenas, of the
master's threads, which have ended.
"""

from __future__ import annotations

import json
import os
import sys
import threading

import cowpreload
from cowpreload import _core

HEAPS = 2
held: list[bytes] = []


def in_threads(work: list[int]) -> list[bytes]:
    """Allocate blocks of these sizes in each of HEAPS threads that live together."""
    made: list[bytes] = []
    together = threading.Barrier(HEAPS)

    def run() -> None:
        mine = [bytes(size) for size in work]
        together.wait()
        made.extend(mine)

    threads = [threading.Thread(target=run) for _ in range(HEAPS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


held = in_threads([600, 3000, 700, 800, 20_000] * 1500)
held.append(in_threads([70_000] * 4)[0])
del held[::2]
before = _core.take_reading().rss
report = cowpreload.freeze(seal=sys.argv[1])
grew = _core.take_reading().rss - before
child = os.fork()
if child == 0:
    start = _core.take_reading().private
    young = in_threads([600, 700, 3000] * 500)
    private = _core.take_reading().private - start
    figures = {
        "sealed": vars(report.sealed),
        "young": sum(map(len, young)),
        "private": private,
        "master_grew": grew,
    }
    print(json.dumps(figures), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
os._exit(status)
