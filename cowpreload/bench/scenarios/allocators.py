"""The same requests under several allocators, each plain and with all that we do.

H. Inoue, H. Komatsu and T. Nakatani compare PHP's allocator, one of regions and their
own DDmalloc, which keeps sizes apart, defragments nothing and forgets all at the end of
a transaction. What carries over to Python: pymalloc is of the second kind, and the
transaction at whose end all is forgotten is the life of a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cowpreload.bench.allocators import ALLOCATORS, Allocator, loaded
from cowpreload.bench.hall import Block, Hall, paired
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.mode import Mode, ours, plain
from cowpreload.bench.observe import (
    TICK,
    Memory,
    leave_all,
    look,
    stat,
    wait_forked,
    wait_quiet,
)
from cowpreload.bench.scenarios import Options
from cowpreload.bench.server import Server
from cowpreload.bench.site import browsing
from cowpreload.bench.stats import Figures, spread

METHOD = (
    "The example shop on gunicorn. Each allocator, plain and all, beside a server of "
    "pymalloc, plain: requests to the shop in blocks that both serve in turn, memory, "
    "blocks of the page /nelson/, memory, SIGTERM. Processor time is of the master and "
    "all its workers; the ratio is of the two times of one block. Faults are minor "
    "ones of the workers while they served the blocks, a request. Exit is processor "
    "time and faults from SIGTERM on, a worker. Memory is smaps_rollup's, fresh is "
    "before any request. The library is looked for in the process's maps."
)
PAGES = ("site", "nelson")
REFERENCE = "pymalloc plain"


@dataclass(frozen=True)
class Plan:
    """The numbers of one size.

    Attributes:
        warm: requests to each server before the first block.
        pairs: blocks of the shop served by both.
        block: requests of such a block.
        nelson: blocks of the page, and requests of each.
        environ: of the site.
        seconds: what the whole takes on a machine of 2 cores, about.
        only: names of the allocators that are measured; none: all.
    """

    warm: int
    pairs: int
    block: int
    nelson: tuple[int, int]
    environ: tuple[tuple[str, str], ...]
    seconds: int
    workers: int = 4
    only: tuple[str, ...] = ()


SMALL = (("SHOP_CATALOGUE_MB", "40"),)
PLANS = {
    "full": Plan(200, 5, 100, (3, 50), (), 600),
    "quick": Plan(20, 2, 20, (1, 10), SMALL, 50, 2),
    "tiny": Plan(
        *(2, 1, 10, (1, 2), (("SHOP_CATALOGUE_MB", "5"),), 6, 1),
        only=("pymalloc",),
    ),
}


def modes(allocator: Allocator) -> tuple[Mode, Mode]:
    """Plain and all of one allocator."""
    given = allocator.environ()
    first, second = (
        replace(
            mode,
            name=f"{allocator.name} {mode.name}",
            about=allocator.about,
            settings=(*mode.settings, *given),
        )
        for mode in (plain("gunicorn"), ours("gunicorn"))
    )
    return first, second


def _memory(memory: Memory) -> Figures:
    return {
        "private": [each.private for each in memory.workers],
        "total_pss": memory.total_pss,
    }


def _faults(memory: Memory) -> int:
    return sum(each.faults for each in memory.workers)


def _start(hall: Hall, mode: Mode, plan: Plan) -> Server:
    server = hall.start(mode, plan.workers, dict(plan.environ))
    wait_forked(server, plan.workers)
    library = dict(mode.settings).get("LD_PRELOAD", "")
    if library and not loaded(library, server.pid):
        raise RuntimeError(f"{library}: not loaded; the log:\n{server.log}")
    return server


def _leave(server: Server) -> Figures:
    pids = server.workers()
    worked = sum(stat(pid).ticks for pid in pids) + stat(server.pid).children_ticks
    gone = leave_all(server)
    ticks = stat(server.pid).children_ticks - worked
    return {
        "cpu": ticks * TICK / len(pids),
        "pages": gone.faults / len(pids),
        "grew": gone.peak - gone.before,
    }


def compete(hall: Hall, plan: Plan, pair: Sequence[Mode]) -> list[Figures]:
    """One life of two servers side by side; figures of each."""
    found: list[Figures] = [{}, {}]
    with _start(hall, pair[0], plan) as first, _start(hall, pair[1], plan) as second:
        servers = (first, second)
        for server, figures in zip(servers, found, strict=True):
            wait_quiet(server)
            figures["fresh"] = _memory(look(server))
            server.wait_serving(workers=plan.workers, seconds=300)
            hall.load(server, browsing(server, plan.warm))
        blocks = {
            "site": [browsing(first, plan.block)] * plan.pairs,
            "nelson": [["/nelson/"] * plan.nelson[1]] * plan.nelson[0],
        }
        for page in PAGES:
            before = [_faults(look(server)) for server in servers]
            served = paired(hall, first, second, blocks[page])
            for which, server in enumerate(servers):
                memory = look(server)
                made = sum(map(len, blocks[page]))
                found[which][page] = {
                    **_memory(memory),
                    "faults": (_faults(memory) - before[which]) / made,
                    "cpu": [each.cpu_ms for each in served[which]],
                    "ratio": _ratios(served[0], served[which]),
                }
        for server, figures in zip(servers, found, strict=True):
            figures["exit"] = _leave(server)
    return found


def _ratios(reference: Sequence[Block], of: Sequence[Block]) -> list[float]:
    pairs = zip(reference, of, strict=True)
    return [one.cpu_ms / first.cpu_ms for first, one in pairs if first.cpu_ms]


def summary(runs: Sequence[Figures]) -> Figures:
    """Medians and spreads over all runs, workers and blocks of one mode. Pure."""

    def all_of(name: str, page: str) -> list[Any]:
        values = [run[page][name] for run in runs]
        return [
            each
            for value in values
            for each in (value if isinstance(value, list) else [value])
        ]

    figures: Figures = {
        "fresh": {"total_pss": spread(all_of("total_pss", "fresh"), 0)},
        "exit": {
            "cpu": spread(all_of("cpu", "exit")),
            "pages": spread(all_of("pages", "exit"), 0),
            "grew": spread(all_of("grew", "exit"), 0),
        },
    }
    for page in PAGES:
        figures[page] = {
            "private": spread(all_of("private", page), 0),
            "total_pss": spread(all_of("total_pss", page), 0),
            "faults": spread(all_of("faults", page), 1),
            "cpu": spread(all_of("cpu", page), 2),
            "ratio": spread(all_of("ratio", page) or [0.0]),
        }
    return figures


def run(hall: Hall, journal: Journal, plan: Plan, options: Options) -> None:
    """Every allocator that is installed, plain and all, against the reference."""
    reference = modes(ALLOCATORS[0])[0]
    references: list[Figures] = []
    for allocator in ALLOCATORS:
        if plan.only and allocator.name not in plan.only:
            continue
        if allocator.missing():
            value = {"missing": allocator.missing()}
            journal.put("allocators", allocator.name, value=value)
            journal.note(
                f"{allocator.name}: not installed; apt-get install {value['missing']}"
            )
            continue
        for mode in modes(allocator):
            if mode.name == REFERENCE:
                continue
            say(f"allocators: {mode.name} beside {REFERENCE}")
            try:
                first, second = compete(hall, plan, (reference, mode))
            except (RuntimeError, TimeoutError, OSError) as error:
                hall.wrong += 1
                journal.note(f"{mode.name}: failed: {error}")
                continue
            references.append(first)
            for name, about, runs in (
                (REFERENCE, reference.about, references),
                (mode.name, mode.about, [second]),
            ):
                found = {"about": about, "summary": summary(runs), "runs": runs}
                journal.put("allocators", name, value=found)
