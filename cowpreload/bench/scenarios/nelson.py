"""The set-up of Nelson's paper: bursts on one page, memory after each, then rates.

Andrew Nelson, "Optimizing Pypy's Garbage Collector for Copy On Write Performance given
a forky Web-Server Workload", March 2018, sections 5 and 6. Its page is the shop's
/nelson/. On CPython it is served by the shop, with the catalogue beside it; on PyPy
alone (programs/paper.py), because Debian's PyPy is too old for the shop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cowpreload.bench import cgroup, pypy
from cowpreload.bench.cgroup import Cgroup
from cowpreload.bench.hall import Hall, paired
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.lines import Lines
from cowpreload.bench.machine import available
from cowpreload.bench.mode import HOSTS, SHOWN, Mode, ours, plain
from cowpreload.bench.observe import look, wait_forked, wait_quiet
from cowpreload.bench.scenarios import Options
from cowpreload.bench.server import Server
from cowpreload.bench.server import gunicorn as start_gunicorn
from cowpreload.bench.stats import Figures, spread
from cowpreload.units import MIB

METHOD = (
    "4 workers, the page /nelson/. Memory: smaps_rollup of each worker (the kernel's "
    "sum of smaps) after every burst of requests; a worker that was replaced goes on "
    "in the seat of the one before it. Rates: plain and ours run side by side, each "
    "in a cgroup, and serve blocks of 100 requests in turn; right answers a second at "
    "each mark are over all blocks up to it; the ratio is of the pairs of one block. "
    "Under the cap, the same with each group limited to halfway between the two "
    "peaks seen without (file pages included). The paper's machine paged; one without "
    "swap kills instead, and those requests fail."
)
WORKERS = 4
PAGE = "/nelson/"
MARKS = (5_000, 10_000, 15_000, 20_000)  # the paper's
PYPY_NEEDS = 14 << 30  # bytes: four workers of 2.2 GB before they collect, and ours
# PyPy without major collections grows by a page's garbage with each request: look often
# and act at once.
PYPY_SETTINGS = {
    "COW_GC": "off",
    "COW_FORK_SAFETY": "off",  # not what is measured, and it reads the whole heap
    "COW_WARMUP": PAGE,
    "COW_WARMUP_REPEAT": "60",  # the compiler of PyPy starts after about 50
    "COW_CHECK_INTERVAL": "0.1",
    "COW_STRIKES": "1",
    "COW_MIN_LIFETIME": "0",
    "COW_JITTER": "0",
    "COW_MAX_RECYCLING": "2",
    "COW_MAX_PRIVATE": "600M",
}


@dataclass(frozen=True)
class Plan:
    """The numbers of one size.

    Attributes:
        bursts: how many, of `burst` requests each.
        fraction: of the paper's numbers of requests for the rates, as 1/n.
        block: requests of a block, of which each server serves one in turn.
        pypy: requests of a burst on PyPy; 0: only if asked for. Twice the paper's:
            the first major collection came after 1,100 to 1,500 requests of a worker.
        seconds: what the whole takes on a machine of 2 cores, about.
        hosts: on which it is measured.
        capped: the rates are measured under a cap of memory, too.
    """

    bursts: int
    burst: int
    fraction: int
    block: int
    environ: tuple[tuple[str, str], ...]
    pypy: int
    seconds: int
    hosts: tuple[str, ...] = HOSTS
    capped: bool = True

    @property
    def marks(self) -> tuple[int, ...]:
        """Requests after which a rate is given."""
        return tuple(mark // self.fraction for mark in MARKS)


PLANS = {
    "full": Plan(50, 100, 5, 100, (), 200, 480),
    "quick": Plan(5, 40, 50, 100, (("SHOP_CATALOGUE_MB", "40"),), 0, 60),
    "tiny": Plan(2, 8, 1250, 8, (("SHOP_CATALOGUE_MB", "5"),), 0, 6, HOSTS[:1], False),
}


@dataclass(frozen=True)
class Entry:
    """One server of a pair: `name` is plain or all, `start` starts it."""

    name: str
    shown: str
    start: Callable[[Cgroup | None], Server]


def rates(block: int, seconds: Sequence[float], right: Sequence[int]) -> Figures:
    """Right answers a second up to each quarter of the blocks. Pure."""
    count = len(seconds)
    marks = [max(1, count * quarter // 4) for quarter in (1, 2, 3, 4)]
    return {
        str(mark * block): round(sum(right[:mark]) / sum(seconds[:mark]), 1)
        for mark in marks
    }


def _bursts(hall: Hall, entry: Entry, bursts: int, size: int) -> Figures:
    lines = Lines(WORKERS)
    with entry.start(None) as server:
        wait_forked(server, WORKERS)
        wait_quiet(server)
        lines.add(look(server))
        took = []
        for burst in range(bursts):
            report = hall.load(server, [PAGE] * size)
            took.append(report.rate)
            lines.add(look(server))
            if burst % 10 == 9:
                say(
                    f"nelson: {entry.shown}: burst {burst + 1} of {bursts}, "
                    f"{report.rate:.0f}/s"
                )
        recycled = server.log.count(" recycled ")
    return {
        "shown": entry.shown,
        "burst": size,
        "recycled": recycled,
        "rate": spread(took, 1),
        **lines.figures(),
    }


def _compete(
    hall: Hall, pair: Sequence[Entry], plan: Plan, cap: int = 0
) -> tuple[Figures, list[int]]:
    """Blocks from both servers in turn; figures, and the peaks of their groups."""
    names = [entry.name for entry in pair]
    with contextlib.ExitStack() as stack:
        groups: list[Cgroup | None] = [None, None]
        if not cgroup.available():
            groups = [stack.enter_context(cgroup.group()) for _ in pair]
        for group in groups:
            if group and cap:
                group.cap(cap)
        servers = [
            stack.enter_context(entry.start(group))
            for entry, group in zip(pair, groups, strict=True)
        ]
        for server in servers:
            server.wait_serving(workers=WORKERS, seconds=300)
        blocks = [[PAGE] * plan.block] * (plan.marks[-1] // plan.block)
        served = paired(hall, servers[0], servers[1], blocks, may_fail=bool(cap))
        figures: Figures = {
            name: {
                "rates": rates(
                    plan.block,
                    [each.report.seconds for each in of],
                    [each.report.right for each in of],
                ),
                "requests": len(of) * plan.block,
                "failed": len(of) * plan.block - sum(each.report.right for each in of),
                "kills": group.kills() if group else 0,
            }
            for name, of, group in zip(names, served, groups, strict=True)
        }
        ratios = [
            ours.report.rate / plain.report.rate
            for plain, ours in zip(*served, strict=True)
            if plain.report.rate and ours.report.rate
        ]
        if ratios:
            figures["ratio"] = spread(ratios)
        peaks = [group.peak() if group else 0 for group in groups]
    return figures, peaks


def _throughput(
    hall: Hall, journal: Journal, plan: Plan, name: str, pair: Sequence[Entry]
) -> None:
    say(f"nelson: {name}: {plan.marks[-1]} requests, {pair[1].name} against plain")
    figures, peaks = _compete(hall, pair, plan)
    figures["peaks"] = dict(zip((each.name for each in pair), peaks, strict=True))
    journal.put("throughput", name, "uncapped", value=figures)
    if not plan.capped:
        return
    if not all(peaks):
        journal.note(f"{name}: no memory cap: {cgroup.available()}")
        return
    if peaks[0] <= peaks[1]:
        journal.note(f"{name}: no memory cap: plain took no more than ours")
        return
    cap = sum(peaks) // 2
    say(f"nelson: {name}: the same, each capped at {cap / MIB:.0f} MiB")
    try:
        figures, _ = _compete(hall, pair, plan, cap)
    except (RuntimeError, TimeoutError, OSError) as error:
        text = str(error).splitlines()[0]
        journal.note(f"{name}: capped at {cap / MIB:.0f} MiB: gave up: {text}")
        return
    journal.put("throughput", name, "capped", value={"cap": cap, **figures})


def _entry(hall: Hall, plan: Plan, mode: Mode) -> Entry:
    def start(group: Cgroup | None) -> Server:
        return hall.start(mode, WORKERS, dict(plan.environ), group)

    return Entry(mode.name, mode.shown, start)


def _pypy_start(
    hall: Hall, found: pypy.PyPy, cow: bool, group: Cgroup | None
) -> Server:
    arguments = ["--config", str(hall.empty()), "--workers", str(WORKERS), "--preload"]
    arguments += ["--timeout", "300"]
    if cow:
        # By its path: nothing is installed there, so the name "cow" is not known.
        arguments += ["--worker-class", "cowpreload.hosts.gunicorn.CowWorker"]
    arguments.append("cowpreload.bench.programs.paper")
    server = start_gunicorn(
        arguments,
        hall.site.path,
        hall.log(),
        {"PYTHONPATH": str(found.path), **(PYPY_SETTINGS if cow else {})},
        python=found.python,
        prefix=group.prefix if group else (),
    )
    return hall.add(server)


def _pypy_pair(
    hall: Hall, journal: Journal, options: Options
) -> tuple[Entry, Entry] | None:
    try:
        path = pypy.find(options.pypy)
        say(f"nelson: making an environment for {path}")
        found = pypy.prepare(path, hall.site.directory)
    except pypy.NoPyPyError as error:
        journal.note(f"PyPy: left out: {error}")
        return None
    journal.put("pypy", value={"versions": found.version, "settings": PYPY_SETTINGS})
    shown = "PyPy gunicorn"
    return (
        Entry("plain", f"{shown} plain", partial(_pypy_start, hall, found, False)),
        Entry("all", f"{shown} gc=off", partial(_pypy_start, hall, found, True)),
    )


def run(hall: Hall, journal: Journal, plan: Plan, options: Options) -> None:
    """Bursts and rates on both hosts, then on PyPy."""
    pairs: dict[str, Sequence[Entry] | None] = {
        SHOWN[host]: tuple(
            _entry(hall, plan, mode) for mode in (plain(host), ours(host))
        )
        for host in plan.hosts
    }
    if plan.pypy or options.pypy:
        pairs["PyPy"] = _pypy_pair(hall, journal, options)
        if available() < PYPY_NEEDS:
            pairs["PyPy"] = None
            journal.note(f"PyPy: left out: needs {PYPY_NEEDS / MIB:.0f} MiB free")
    else:
        journal.note("PyPy: left out of a quick run; --pypy PATH takes it in")
    for name, pair in pairs.items():
        if pair is None:
            continue
        try:
            for entry in pair:
                burst = plan.pypy if name == "PyPy" and plan.pypy else plan.burst
                say(f"nelson: {entry.shown}: {plan.bursts} bursts of {burst}")
                value = _bursts(hall, entry, plan.bursts, burst)
                journal.put("memory", f"{name} {entry.name}", value=value)
            _throughput(hall, journal, plan, name, pair)
        except (RuntimeError, TimeoutError, OSError) as error:
            hall.wrong += 1
            journal.note(f"{name}: failed: {error}")
