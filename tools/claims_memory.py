"""The claims of the documents on allocators and caches beside our figures. Pure.

Takes the results of `cowpreload bench allocators` and `caches` by interpreter; gives
rows for `claims.claims`. The slides give their figures as pictures: what stands for
them is what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from experiments import Figures

from cowpreload.bench.allocator_tables import ratio
from cowpreload.units import MIB

Found = Mapping[str, Figures]
Row = tuple[str, str, Callable[[Found], str], str]


def _allocator(results: Found, name: str) -> Any:
    return results["allocators"]["allocators"][name]["summary"]


def _cpu(results: Found, name: str, page: str = "site") -> str:
    return ratio(_allocator(results, name)[page]["ratio"])


def _fresh(results: Found, *names: str) -> str:
    found = [_allocator(results, name)["fresh"]["total_pss"] for name in names]
    return " → ".join(f"{each['median'] / MIB:.0f} MiB" for each in found)


def _given_back(results: Found) -> str:
    first, second = (
        _allocator(results, name)["nelson"]
        for name in ("jemalloc plain", "jemalloc tuned plain")
    )
    shown = [
        f"faults {first['faults']['median']:.0f} → {second['faults']['median']:.0f}",
        f"private {_private(first)} → {_private(second)}",
    ]
    if "-" not in (ratio(first["ratio"]), ratio(second["ratio"])):
        shown.append(f"CPU {ratio(first['ratio'])} → {ratio(second['ratio'])}")
    return ", ".join(shown)


def _private(found: Any) -> str:
    return f"{found['private']['median'] / MIB:.0f} MiB"


def _exits(results: Found) -> str:
    plain, ours = (
        _allocator(results, name)["exit"] for name in ("pymalloc plain", "pymalloc all")
    )
    return (
        f"{1000 * plain['cpu']['median']:.0f} → {1000 * ours['cpu']['median']:.0f} ms, "
        f"{plain['pages']['median']:.0f} → {ours['pages']['median']:.0f} pages"
    )


def _workers(results: Found, mode: str) -> str:
    names = ("pymalloc", "malloc", "jemalloc", "tcmalloc")
    found = {name: _allocator(results, f"{name} {mode}")["site"] for name in names}
    return ", ".join(f"{name} {_private(each)}" for name, each in found.items())


ALLOCATORS: tuple[Row, ...] = (
    (
        "sizes kept apart, a free list each, cost less than a general allocator",
        "higher throughput, on one core and on eight",
        lambda results: f"`malloc` alone: CPU {_cpu(results, 'malloc plain')}",
        "pymalloc is such an allocator; its own share of a Python request is small",
    ),
    (
        "no header on each object",
        "a simpler heap",
        lambda results: _fresh(results, "malloc plain", "pymalloc plain"),
        "total PSS before any request: one heap, shared",
    ),
    (
        "defragmenting costs more than it brings in so short a life",
        "defrag-dodging",
        _given_back,
        "jemalloc that keeps what is freed, and one that gives each page back at once; "
        "/nelson/",
    ),
    (
        "memory that is not reused makes bus traffic, which many cores share",
        "regions: slower on eight cores",
        lambda results: "not measured",
        "two cores, and no counters of the bus on this machine",
    ),
    (
        "the whole heap is forgotten at once at the end of a transaction",
        "metadata cleared",
        _exits,
        "of a worker: finalization, and `os._exit` after the exit handlers",
    ),
    (
        "the choice of the allocator, without us: private memory of a worker",
        "",
        lambda results: _workers(results, "plain"),
        "",
    ),
    (
        "the same with all that we do",
        "",
        lambda results: _workers(results, "all"),
        "holes are filled in pymalloc and glibc alone (`cow-seal`)",
    ),
)


def _sizes(results: Found, mode: str, cell: Callable[[Any], str]) -> str:
    caches = results["caches"]["caches"]
    return ", ".join(cell(found[mode]["summary"]) for found in caches.values())


def _median(name: str, scale: float, digits: int = 0) -> Callable[[Any], str]:
    return lambda found: f"{found[name]['median'] * scale:.{digits}f}"


FULL, LONGEST = _median("full", 1000), _median("longest", 1000)
SHARE, CPU = _median("share", 100), _median("cpu", 1000, 2)
PRIVATE = _median("private", 1 / MIB)


def _with(cell: Callable[[Any], str], unit: str, *modes: str) -> Callable[[Found], str]:
    """A figure at each size of the cache, from one mode to the next."""
    return lambda results: (
        " → ".join(_sizes(results, mode, cell) for mode in modes) + f" {unit}"
    )


CACHES: tuple[Row, ...] = (
    (
        "sizes of the cache, in the order of the figures below",
        "1000 trees of 700 nodes; 166 MB",
        lambda results: ", ".join(results["caches"]["caches"]) + " MB",
        "",
    ),
    (
        "tracing a cache takes time with each collection",
        "the more, the tighter the heap",
        _with(FULL, "ms", "worker"),
        "a full collection; theirs are collectors of Java, Go and Foster",
    ),
    (
        "throughput falls with it",
        "steeply, in small heaps",
        _with(SHARE, "% of CPU", "worker"),
        "CPython collects by what is new, not when memory runs out",
    ),
    (
        "generations do not help: what is cached lives long",
        "slower than without",
        _with(LONGEST, "ms at most", "plain"),
        "a cache that came with the fork: a collection copies it, too",
    ),
    (
        "counted memory is freed at a steady price",
        "flat",
        _with(CPU, "ms a request", "gc off"),
        "CPython counts; no collections. A larger cache replaces more in each request",
    ),
    (
        "subheaps, which need no tracing, are flat and fast: the inherited one",
        "flat",
        _with(SHARE, "% of CPU", "plain", "all"),
        "frozen; what has replaced the LRU is young, and traced",
    ),
    (
        "the same for the young one",
        "flat",
        _with(FULL, "ms", "worker", "settled x4"),
        "a full collection after `settle()`",
    ),
    (
        "the longest answer of a server",
        "far longer with one collection; as memcached's with subheaps",
        _with(LONGEST, "ms", "worker", "settled x4"),
        "the pause of the collection, or of `settle()`, alone",
    ),
    (
        "what it costs in throughput",
        "-1.8 % with the collection, -4.2 % with subheaps",
        _with(CPU, "ms a request", "worker", "settled x4"),
        "theirs scan the stack 30,000 times; `settle()` looks at each new object once, "
        "and this LRU is new each 1000 requests",
    ),
    (
        "all that is allocated must be captured: the rest brings collections back",
        "observed",
        _with(LONGEST, "ms", "settled", "settled x4"),
        "longest pause, settled once, and again and again",
    ),
    (
        "care not to capture too much: garbage stays with it",
        "more memory",
        _with(PRIVATE, "MiB", "settled x4", "x4, cycles"),
        "private; trees of the LRU that are cycles are never freed once settled",
    ),
    (
        "most caches hold strings and blobs, which need no tracing",
        "effects are muted",
        _with(SHARE, "% of CPU", "worker, blobs"),
        "as many bytes; CPython does not trace them either",
    ),
)
