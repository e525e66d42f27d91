"""How many workers fit: few and many, small and large heaps, in three modes.

The number that decides is the fitted cost of one more worker: the slope of total
memory over the number of workers, once each worker has served the same requests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cowpreload.bench.hall import Hall
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.machine import available
from cowpreload.bench.mode import HOSTS, Mode, alone, ours, plain
from cowpreload.bench.observe import QUIET, look, wait_forked, wait_quiet
from cowpreload.bench.scenarios import Options
from cowpreload.bench.site import browsing
from cowpreload.bench.stats import Figures, fit, spread
from cowpreload.units import MIB

METHOD = (
    "The example shop with a catalogue of so many MB (SHOP_CATALOGUE_MB): without "
    "preload, with it (plain), with all that cowpreload does. A fresh "
    "server for every combination; each worker serves the same number of requests on "
    "average, spread over the whole catalogue; then memory is read, master included. "
    "Fork: from the first worker seen to the last (looked at every ms); gunicorn "
    "itself sleeps up to 0.1 s between two forks, in every mode. Ready: from the "
    "start of the server, loading included, to all workers forked and the first "
    "answer. Cost: slope of total PSS over workers by least squares, with its "
    "standard error. Servers are killed afterwards: no finalization is measured here."
)
RESERVE = 0.8  # of the memory that is available may be planned for


@dataclass(frozen=True)
class Plan:
    """The numbers of one size.

    Attributes:
        heaps: MB of the catalogue, and how often each combination is repeated.
        workers: numbers of workers, ascending.
        requests: a worker.
        alone: most workers without preload, which load the site one by one: where
            nothing is shared, few tell what one more costs.
        seconds: what the whole takes on a machine of 2 cores, about.
    """

    heaps: tuple[tuple[int, int], ...]
    workers: tuple[int, ...]
    requests: int
    alone: int
    seconds: int


PLANS = {
    "full": Plan(
        ((5, 1), (50, 1), (250, 1), (1000, 1)), (1, 2, 4, 8, 16, 32), 25, 4, 700
    ),
    "quick": Plan(((50, 1),), (1, 2, 4), 10, 2, 24),
    "tiny": Plan(((5, 1),), (1, 2), 4, 2, 12),
}
MODES: tuple[Mode, ...] = tuple(
    mode for host in HOSTS for mode in (alone(host), plain(host), ours(host))
)


def _environ(heap: int) -> Mapping[str, str]:
    return {"SHOP_CATALOGUE_MB": str(heap), "SHOP_NELSON": "0"}


def _measure(hall: Hall, mode: Mode, heap: int, workers: int, plan: Plan) -> Figures:
    """One life of one server; bytes and seconds."""
    begin = time.perf_counter()
    with hall.start(mode, workers, _environ(heap)) as server:
        seen = wait_forked(server, workers)
        server.wait_serving(workers=workers, seconds=300)
        ready = time.perf_counter()
        if not mode.preload:  # others may load still; one that answers says nothing
            wait_quiet(server)
            ready = time.perf_counter() - QUIET
        paths = browsing(server, plan.requests * workers)
        hall.load(server, paths, concurrency=max(4, workers))
        memory = look(server)
        server.kill()
    return {
        "loaded_seconds": round(seen[0] - begin, 3),
        "fork_seconds": round(seen[-1] - seen[0], 4),
        "ready_seconds": round(max(seen[-1], ready) - begin, 3),
        "private": [each.private for each in memory.workers],
        "total_pss": memory.total_pss,
    }


def expected(done: Sequence[tuple[int, int]], heap: int, workers: int) -> int:
    """Bytes that `workers` will take, by what fewer took; a guess at first. Pure.

    Args:
        done: (workers, total PSS in bytes) of the same mode and heap.
        heap: MB of the catalogue.
    """
    if len({count for count, _ in done}) >= 2:
        line = fit(done)
        return round(line.start + line.slope * workers)
    if done:
        count, total = done[-1]
        return round(total * workers / count)
    # Nothing is known: as if each worker copied half of it, with 100 MB of its own.
    return round((heap * (1.2 + 0.5 * workers) + 100 * (workers + 1)) * MIB)


def summary(runs: Sequence[Figures]) -> Figures:
    """Medians of the repetitions of one combination. Pure."""
    figures = {
        name: spread([run[name] for run in runs], digits)
        for name, digits in (
            ("loaded_seconds", 3),
            ("fork_seconds", 4),
            ("ready_seconds", 3),
            ("total_pss", 0),
        )
    }
    figures["private"] = spread([each for run in runs for each in run["private"]], 0)
    return figures


def cost(points: Sequence[tuple[int, int]]) -> Figures:
    """What one more worker costs, in MiB, with its standard error. Pure.

    Two points leave no freedom, and no error to tell: None.
    """
    line = fit([(count, total / MIB) for count, total in points])
    return {
        "mib_a_worker": round(line.slope, 2),
        "standard_error": round(line.error, 2) if len(points) > 2 else None,
        "mib_without_workers": round(line.start, 1),
    }


def _row(
    hall: Hall, journal: Journal, plan: Plan, heap: int, repeats: int, mode: Mode
) -> None:
    """One mode at one heap, for every number of workers."""
    points: list[tuple[int, int]] = []
    place = ("heaps", str(heap), mode.key)
    most = plan.workers[-1] if mode.preload else plan.alone
    for workers in (each for each in plan.workers if each <= most):
        runs: list[Figures] = []
        for repeat in range(repeats):
            what = f"scale: {mode.shown}, {heap} MB, {workers} workers"
            need, have = expected(points, heap, workers), available()
            if need > RESERVE * have:
                journal.note(
                    f"{what}: skipped: needs about {need / MIB:.0f} MiB, "
                    f"{have / MIB:.0f} MiB are free"
                )
                break
            say(f"{what} ({repeat + 1} of {repeats})")
            try:
                runs.append(_measure(hall, mode, heap, workers, plan))
            except (RuntimeError, TimeoutError, OSError) as error:
                hall.wrong += 1
                journal.note(f"{what}: failed: {error}")
                break
            points.append((workers, runs[-1]["total_pss"]))
            value = {"summary": summary(runs), "runs": runs}
            journal.put(*place, "workers", str(workers), value=value)
    if len({count for count, _ in points}) >= 2:
        journal.put(*place, "cost", value=cost(points))


def run(hall: Hall, journal: Journal, plan: Plan, options: Options) -> None:
    """Every combination that fits, small heaps first."""
    for heap, repeats in plan.heaps:
        for mode in MODES:
            _row(hall, journal, plan, heap, repeats, mode)
