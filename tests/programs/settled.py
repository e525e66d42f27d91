"""A worker that fills a cache and settles it; prints figures as JSON.

The first argument says what it does. `kept` are objects that the collector lists,
`private` bytes that the call copied or took, `fulls` are full collections.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable

import cowpreload
from cowpreload import _core

Figures = dict[str, object]
INHERITED = [{"number": [number]} for number in range(100_000)]  # 25 MiB


class Entry:
    """Of a cache; in a cycle with what it holds, if it is asked for."""

    def __init__(self, cyclic: bool = False) -> None:
        self.held = [self] if cyclic else [None]


def private() -> int:
    return _core.take_reading().private


def cost(call: Callable[[], object]) -> int:
    before = private()
    call()
    return private() - before


def cached() -> Figures:
    """What the collector sees before and after, and what the call copies."""
    cost(gc.collect)  # what the first one of a process takes
    copied = cost(cowpreload.settle)
    cache = [Entry() for _ in range(50_000)]
    before = len(gc.get_objects())
    took = private()
    report = cowpreload.settle()
    assert report
    return {
        "before": before,
        "after": len(gc.get_objects()),
        "objects": report.objects,
        "copied": copied,
        "took": private() - took,
        "cache": len(cache),
    }


def garbage() -> Figures:
    """What is garbage before the call, what becomes garbage after it."""
    early, late, plain = Entry(cyclic=True), Entry(cyclic=True), Entry()
    named = {"early": early, "late": late, "plain": plain}
    watched = {name: weakref.ref(each) for name, each in named.items()}
    gc.collect()
    gc.disable()
    del named, early
    report = cowpreload.settle()
    assert report
    del late, plain
    gc.collect()
    freed = {name: one() is None for name, one in watched.items()}
    return {"collected": report.collected, **freed}


def periodic() -> Figures:
    """A cache that turns over ten times and settles each time: plain, and cyclic."""
    found: Figures = {}
    for name, cyclic in (("plain", False), ("cyclic", True)):
        cache: deque[Entry] = deque(maxlen=5_000)
        sizes = []
        for _ in range(10):
            cache.extend(Entry(cyclic) for _ in range(5_000))
            cowpreload.settle()
            sizes.append(gc.get_freeze_count())
        found[name] = sizes
    return found


def inherited() -> Figures:
    """After how many lasting objects the first full collection of a worker comes."""
    return {"heap": len(INHERITED), **_lasting()}


def later() -> Figures:
    """And after how many the next one, once it has settled."""
    cache = [Entry() for _ in range(100_000)]
    cowpreload.settle()
    return {"heap": len(cache), **_lasting()}


def _lasting() -> Figures:
    gc.set_threshold(100, 5, 5)
    lasting: list[list[None]] = []
    fulls: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2:
            fulls.append(len(lasting))

    gc.callbacks.append(note)
    while not fulls and len(lasting) < 100_000:
        lasting.append([None])
    gc.callbacks.remove(note)
    return {"lasting": fulls[0] if fulls else -1}


def threads() -> Figures:
    """Others work while it settles, over and over."""
    over, wrong = threading.Event(), []

    def work() -> None:
        kept: deque[Entry] = deque(maxlen=100)
        while not over.is_set():
            kept.append(Entry(cyclic=True))
            wrong.extend(each for each in kept if each.held[0] is not each)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for each in workers:
        each.start()
    for _ in range(50):
        assert cowpreload.settle()
    over.set()
    for each in workers:
        each.join()
    return {"wrong": len(wrong)}


def grandchild() -> Figures:
    """A process that a worker forks may settle too."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, str(bool(cowpreload.settle())).encode())
        os._exit(0)
    os.wait()
    return {"settled": os.read(reading, 10).decode()}


if __name__ == "__main__":
    refused = [cowpreload.settle()]
    cowpreload.freeze()
    refused.append(cowpreload.settle())
    child = os.fork()
    if child == 0:
        found = globals()[sys.argv[1]]()
        found["in_master"] = refused
        print(json.dumps(found), flush=True)
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
