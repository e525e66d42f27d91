"""What a large cache costs the collector, and what hides it: frozen, settled, or not.

B. Karel's `minicache` and `mcd` put a cache into subheaps, which its collector need not
trace. The inherited heap is such a subheap once it is frozen, the young one when it is
settled. One worker, so that each figure is of one process; processor time, not time on
the clock, so that other work on the machine does not count.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cowpreload.bench.hall import Hall
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.machine import available
from cowpreload.bench.mode import IMMORTAL_OFF, Mode
from cowpreload.bench.observe import look
from cowpreload.bench.scenarios import Options
from cowpreload.bench.server import Server
from cowpreload.bench.stats import Figures, spread
from cowpreload.units import MIB

METHOD = (
    "One worker of gunicorn with a cache of so many MB: a third records in a dict, a "
    "third lists of lists, a third an LRU of trees of 31 nodes, of which each request "
    "replaces a thousandth; it also reads 100 records and leaves 200 cycles. The cache "
    "comes with the fork, or is filled by the worker before the first request. Longest "
    "pause and share: of all collections meanwhile, by gc.callbacks, with what "
    "settle() took; in processor time, as is the time of a request. A full collection "
    "is asked for afterwards, once memory has been read; pages are its minor faults. "
    "Medians over the repetitions, each a server of its own."
)
PROGRAM = "cowpreload.bench.programs.caches"
WARMED = ("COW_WARMUP", "/figures")
WORKER = ("BENCH_CACHE_FILLED", "worker")
TIMEOUT = 600.0  # seconds for 1000 MB on a machine that does much else
NEEDED = 3  # times the cache: master, worker, and what an LRU of cycles leaves
QUARTER = ("BENCH_SETTLE", "250")  # requests in which a quarter of the LRU is new


@dataclass(frozen=True)
class Plan:
    """The numbers of one size.

    Attributes:
        caches: MB, and how often each mode is repeated.
        requests: of which 1000 replace the LRU once.
        seconds: what the whole takes on a machine of 2 cores, about.
        only: names of the modes that are measured; none: all.
    """

    caches: tuple[tuple[int, int], ...]
    requests: int
    seconds: int
    only: tuple[str, ...] = ()


PLANS = {
    "full": Plan(((50, 3), (250, 2), (1000, 1)), 2000, 900),
    "quick": Plan(((10, 1), (40, 1)), 500, 30),
    "tiny": Plan(((5, 1),), 60, 5, ("plain", "worker", "settled")),
}


def _mode(name: str, about: str, *settings: tuple[str, str], cow: bool = True) -> Mode:
    given = (WARMED, *settings) if cow else settings
    return Mode(name, "gunicorn", about, cow=cow, settings=given, program=PROGRAM)


MODES = (
    _mode("plain", "preload, the cache comes with the fork", cow=False),
    Mode(
        "gc off",
        "gunicorn",
        "the same, gc.set_threshold(0)",
        attempt="threshold",
        program=PROGRAM,
    ),
    _mode("freeze", "our worker: collect and gc.freeze() alone", IMMORTAL_OFF),
    _mode("all", "our worker with its defaults"),
    _mode("plain, worker", "preload, the worker fills it", WORKER, cow=False),
    _mode("worker", "ours, the worker fills it", WORKER),
    _mode(
        "worker, blobs",
        "the same, of bytes, which no collector looks into",
        *(WORKER, ("BENCH_CACHE_BLOBS", "1")),
    ),
    _mode("settled", "settle() when it is full", WORKER, ("BENCH_SETTLE", "once")),
    _mode("settled x4", "and again as each quarter of the LRU is new", WORKER, QUARTER),
    _mode(
        "x4, cycles",
        "the same, and the trees of the LRU are cycles",
        *(WORKER, QUARTER, ("BENCH_CACHE_CYCLES", "1")),
    ),
)


def _ask(server: Server, path: str) -> Figures:
    status, body = server.get(path, timeout=TIMEOUT)
    if status != 200:
        raise RuntimeError(f"{path}: {status}; the log:\n{server.log}")
    found: Figures = json.loads(body)
    return found


def measure(hall: Hall, mode: Mode, cache: int, requests: int) -> Figures:
    """One life of one server; bytes and seconds."""
    with hall.start(mode, 1, {"BENCH_CACHE_MB": str(cache)}) as server:
        server.wait_serving("/figures", seconds=TIMEOUT)
        _ask(server, "/fill")
        filled = look(server)
        _ask(server, "/figures")
        hall.load(server, ["/"] * requests, concurrency=1)
        found, memory = _ask(server, "/figures"), look(server)
        fulls = [_ask(server, "/full") for _ in range(2)]
        server.kill()
    first, *again = found["settled"] or [0.0]  # the first was before the load
    return {
        "collections": found["counts"],
        "longest": found["longest"],
        "share": found["collecting"] / found["cpu"],
        "cpu": found["cpu"] / requests,
        "settle": first,
        "settle_again": max(again, default=0.0),
        "private_filled": filled.workers[0].private,
        "private": memory.workers[0].private,
        "total_pss": memory.total_pss,
        "full": fulls[1]["seconds"],
        "pages": fulls[0]["faults"],
    }


DIGITS = {"longest": 5, "share": 4, "cpu": 6, "settle": 4, "settle_again": 4, "full": 4}


def summary(runs: Sequence[Figures]) -> Figures:
    """Medians and spreads over the repetitions. Pure."""
    return {
        name: spread([run[name] for run in runs], DIGITS.get(name, 0))
        for name in runs[0]
        if name != "collections"
    }


def run(hall: Hall, journal: Journal, plan: Plan, options: Options) -> None:
    """Every mode with every cache that fits, small ones first."""
    chosen = [mode for mode in MODES if not plan.only or mode.name in plan.only]
    for cache, repeats in plan.caches:
        for mode in chosen:
            need = NEEDED * cache * MIB
            if need > available():
                journal.note(f"{cache} MB: skipped: needs {need / MIB:.0f} MiB")
                break
            runs: list[Figures] = []
            for repeat in range(repeats):
                say(f"caches: {cache} MB, {mode.name} ({repeat + 1} of {repeats})")
                try:
                    runs.append(measure(hall, mode, cache, plan.requests))
                except (RuntimeError, TimeoutError, OSError) as error:
                    hall.wrong += 1
                    journal.note(f"{cache} MB, {mode.name}: failed: {error}")
                    break
                value = {"about": mode.about, "summary": summary(runs), "runs": runs}
                journal.put("caches", str(cache), mode.name, value=value)
