"""A cache in an application, and what the collector makes of it; WSGI alone, no site.

Environment:
- BENCH_CACHE_MB of cache: a third each of records in a dict, of lists of lists, and of
  an LRU of small trees that turns over.
- BENCH_CACHE_FILLED: in the `master`, or by the first `/fill` of a `worker`.
- BENCH_CACHE_CYCLES=1: nodes of the trees know their parent.
- BENCH_CACHE_BLOBS=1: as many bytes instead, which no collector looks into.
- BENCH_ATTEMPT=threshold: no collections.
- BENCH_SETTLE: never, once when it is filled, or again at every so manieth request.

`/` reads some of it, makes garbage, replaces TURN of the LRU. `/figures` gives what the
collector did since the last time, in seconds of processor time: other work on the
machine does not count. `/full` does one full collection.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import cowpreload

MB = int(os.environ.get("BENCH_CACHE_MB", "5"))
CYCLES = os.environ.get("BENCH_CACHE_CYCLES") == "1"
SETTLE = os.environ.get("BENCH_SETTLE", "never")
TURN = 1000  # requests that replace the whole LRU
DEPTH = 5  # of its trees: 31 nodes
GARBAGE = 200  # cycles that a request leaves, as frameworks do


class Node:
    """Of a tree; two objects, if it is no leaf."""

    __slots__ = ("children", "number", "parent")

    def __init__(self, number: int, depth: int, parent: Node | None = None) -> None:
        self.number = number
        self.parent = parent if CYCLES else None
        self.children = (
            [Node(number, depth - 1, self), Node(number, depth - 1, self)]
            if depth > 1
            else None
        )


def record(number: int) -> dict[str, Any]:
    """What a row of a table is read into."""
    tags = [f"tag {number % 90}", f"tag {number % 70}", f"number {number}"]
    name = f"record {number}"
    return {"number": number, "name": name, "price": number / 100, "tags": tags}


def sheet(number: int) -> list[list[object]]:
    """Lists in a list."""
    return [[number, number / 7, f"cell {each}"] for each in range(20)]


def size(item: object) -> int:
    """Bytes of `item` and all that it alone holds."""
    seen: set[int] = set()
    left, total = [item], 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)  # with its header, if it has one
        left += gc.get_referents(one)
    return total


def tree(number: int) -> Node:
    """An item of the LRU."""
    return Node(number, DEPTH)


def _blob(size: int) -> Callable[[int], bytes]:
    return lambda number: number.to_bytes(8, "big") * (size // 8)


KINDS: tuple[Callable[[int], Any], ...] = (record, sheet, tree)
if os.environ.get("BENCH_CACHE_BLOBS") == "1":
    KINDS = (_blob(500), _blob(3300), _blob(2800))
RECORDS: dict[int, Any] = {}
SHEETS: list[Any] = []
LRU: OrderedDict[int, Any] = OrderedDict()


def fill() -> None:
    """Fill a third of it with each kind."""
    records, sheets, trees = (
        map(make, range(int(MB * 1_000_000 / 3 / size(make(0))))) for make in KINDS
    )
    RECORDS.update(enumerate(records))
    SHEETS.extend(sheets)
    LRU.update(enumerate(trees))


class Collector:
    """What it did since it was last asked: collections by generation, seconds."""

    def __init__(self) -> None:
        self.clear()
        self._began = 0.0
        gc.callbacks.append(self._note)

    def clear(self) -> None:
        self.counts = [0, 0, 0]
        self.seconds = self.longest = 0.0
        self._since = time.process_time()

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.process_time()
            return
        took = time.process_time() - self._began
        self.counts[info["generation"]] += 1
        self.seconds += took
        self.longest = max(self.longest, took)

    def figures(self) -> dict[str, object]:
        """All of it; it starts anew."""
        found = {
            "counts": self.counts,
            "collecting": self.seconds,
            "longest": self.longest,
            "cpu": time.process_time() - self._since,
        }
        self.clear()
        return found


def page(number: int) -> int:
    """One request: read, make garbage, turn the LRU over by a TURN-th."""
    seen = 0
    for each in range(number, number + 100):
        seen += len(RECORDS[each * 7919 % len(RECORDS)])
        seen += len(SHEETS[each * 31 % len(SHEETS)])
    for _ in range(GARBAGE):
        scope: dict[str, object] = {"seen": [seen]}
        scope["self"] = scope
    first = next(reversed(LRU)) + 1
    for fresh in range(first, first + max(1, len(LRU) // TURN)):
        LRU.popitem(last=False)
        LRU[fresh] = KINDS[2](fresh)
    return seen


requests = 0


def browse() -> dict[str, object]:
    """The page, and what is to be settled."""
    global requests
    requests += 1
    found: dict[str, object] = {"seen": page(requests)}
    if SETTLE.isdigit() and requests % int(SETTLE) == 0:
        settle()
    return found


settled: list[float] = []


def settle() -> None:
    """What it takes is time spent collecting, all of it."""
    before, began = collector.seconds, time.process_time()
    cowpreload.settle()
    settled.append(time.process_time() - began)
    collector.seconds = before + settled[-1]
    collector.longest = max(collector.longest, settled[-1])


def fill_worker() -> dict[str, object]:
    """Fill it here, unless it came with the fork."""
    if not LRU:
        fill()
        if SETTLE != "never":
            settle()
    return {"records": len(RECORDS), "sheets": len(SHEETS), "trees": len(LRU)}


def full() -> dict[str, object]:
    """One full collection: its processor time, and pages copied."""
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    began = time.process_time()
    gc.collect()
    took = time.process_time() - began
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    return {"seconds": took, "faults": faults}


collector = Collector()
if os.environ.get("BENCH_ATTEMPT") == "threshold":
    gc.set_threshold(0)
if os.environ.get("BENCH_CACHE_FILLED", "master") == "master":
    fill()
PAGES: dict[str, Callable[[], dict[str, object]]] = {
    "/": browse,
    "/fill": fill_worker,
    "/figures": lambda: {**collector.figures(), "settled": settled},
    "/full": full,
}


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """JSON for each of PAGES."""
    body = json.dumps(PAGES[environ["PATH_INFO"]]()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
