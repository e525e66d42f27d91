"""Which tables show the figures of a scenario, for a terminal and for docs. Pure.

Takes what a journal holds, complete or not; gives text. Sizes are shown in MiB,
medians alone; one line below tells how far the quartiles lie from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from textwrap import fill

from cowpreload.bench import allocator_tables, cache_tables, learn_tables
from cowpreload.bench.mode import SHOWN
from cowpreload.bench.render import WIDTH, Table
from cowpreload.bench.stats import Figures
from cowpreload.units import MIB


def mib(spread: Figures, digits: int = 0) -> str:
    """The median of a spread of bytes."""
    return f"{spread['median'] / MIB:.{digits}f}"


def setting(figures: Figures) -> str:
    """One line: what ran."""
    versions = figures["versions"]
    size = "" if figures["size"] == "full" else f" ({figures['size']} run)"
    part = "" if figures["complete"] else " (INCOMPLETE)"
    return (
        f"{figures['scenario']}{size}{part}: "
        f"{versions['implementation']} {versions['python']}, "
        f"Django {versions.get('django')}, gunicorn {versions.get('gunicorn')}, "
        f"uWSGI {versions.get('uwsgi')}"
    )


def widest(spreads: Iterable[Figures]) -> str:
    """How far a quartile lies from its median at most, in percent."""
    shares = [
        max(abs(each - found["median"]) for each in found["quartiles"])
        / found["median"]
        for found in spreads
        if found["median"]
    ]
    return f"{100 * max(shares, default=0):.0f} %"


# ---- instagram ------------------------------------------------------------------


def attempts(figures: Figures, host: str) -> Table:
    """The modes of one host, in their order."""
    modes = [each for each in figures.get("modes", {}).values() if each["host"] == host]
    rows = []
    for each in modes:
        found = each["summary"]
        rows.append(
            (
                each["name"],
                *(
                    mib(found[phase]["private"], 1)
                    for phase in ("fresh", "warm", "end")
                ),
                *(mib(found[phase]["shared"]) for phase in ("fresh", "end")),
                mib(found["end"]["total_pss"]),
                f"{found['end']['faults']['median']:.0f}",
                f"{found['exit']['seconds']['median']:.2f}",
                f"{found['exit']['pages']['median']:.0f}",
                mib(found["exit"]["peak"]),
            )
        )
    head = (
        *(SHOWN[host], "private", "warm", "end", "shared", "end", "PSS"),
        *("faults", "exit s", "copied", "peak"),
    )
    found = [each["summary"] for each in modes]
    foot = (
        "Widest quartile off its median: private at the end "
        f"{widest(each['end']['private'] for each in found)}, exit "
        f"{widest(each['exit']['seconds'] for each in found)}."
    )
    workers = figures["method"]["plan"]["workers"]
    title = (
        f"{workers} workers; MiB a worker: private fresh, warm, at the end; shared "
        "fresh, at the end; total PSS; minor faults a worker; all leave: seconds, "
        "pages copied a worker, peak PSS"
    )
    return Table(title, head, tuple(rows), foot)


def collectors(figures: Figures) -> Table:
    """Whether the collector ran in a worker, after all that was done against it."""
    rows = []
    for each in figures.get("modes", {}).values():
        state = each["summary"]["collector"]
        if each["host"] == "gunicorn":
            enabled = "yes" if state["enabled"] else "no"
            rows.append((each["name"], enabled, str(state["threshold"])))
    title = "The collector in a worker of gunicorn, at the end:"
    return Table(title, ("mode", "gc.isenabled()", "gc.get_threshold()"), tuple(rows))


def _instagram(figures: Figures) -> list[Table]:
    return [*(attempts(figures, host) for host in SHOWN), collectors(figures)]


# ---- cpu ------------------------------------------------------------------------


def ratio(found: Figures) -> str:
    """The median of the pairs with its quartiles: a ratio without them says nothing."""
    low, high = found["quartiles"]
    return f"{found['median']:.2f} ({low:.2f} to {high:.2f})"


def costs(figures: Figures) -> Table:
    """Processor time a request, all against plain."""
    rows = tuple(
        (
            SHOWN[host],
            f"{found['plain']['median']:.1f}",
            f"{found['all']['median']:.1f}",
            ratio(found["ratio"]),
            str(found["ratio"]["n"]),
        )
        for host, found in figures.get("cpu", {}).items()
    )
    plan = figures["method"]["plan"]
    title = (
        f"Processor time a request, ms: {plan['workers']} workers, blocks of "
        f"{plan['block']} requests served by both in turn; medians, quartiles of the "
        "ratio"
    )
    return Table(title, ("host", "plain", "all", "all / plain", "pairs"), rows)


def _cpu(figures: Figures) -> list[Table]:
    return [costs(figures)]


# ---- nelson ---------------------------------------------------------------------


def bursts(figures: Figures) -> Table:
    """Memory before the first and after the last burst."""
    rows = []
    for found in figures.get("memory", {}).values():
        end = found["end"]
        first = [line[0] for line in found["private"] if line and line[0] is not None]
        rows.append(
            (
                found["shown"],
                f"{sum(first) / max(1, len(first)) / MIB:.1f}",
                mib(end["private"], 1),
                mib(end["shared"], 1),
                f"{end['total_pss'] / MIB:.0f}",
                f"{end['most_total_pss'] / MIB:.0f}",
                str(found["recycled"]),
            )
        )
    plan = figures["method"]["plan"]
    title = (
        f"4 workers, {plan['bursts']} bursts of {plan['burst']} requests; MiB a "
        "worker: private at first, at the end, shared at the end; total PSS, its "
        "highest; recycled"
    )
    head = ("mode", "private", "end", "shared", "PSS", "most", "recycled")
    return Table(title, head, tuple(rows))


def under_cap(figures: Figures) -> Table:
    """Requests a second after so many, with and without the cap."""
    rows = []
    marks: Sequence[str] = ()
    for name, found in figures.get("throughput", {}).items():
        for cap in ("uncapped", "capped"):
            if cap not in found:
                continue
            part = found[cap]
            limit = f" {part['cap'] / MIB:.0f}" if cap == "capped" else ""
            for mode in ("plain", "all"):
                marks = tuple(part[mode]["rates"])
                found_ratio = ratio(part["ratio"]) if "ratio" in part else ""
                rows.append(
                    (
                        f"{name} {mode}{limit}",
                        *(f"{part[mode]['rates'][mark]:.0f}" for mark in marks),
                        str(part[mode]["failed"]),
                        str(part[mode]["kills"]),
                        found_ratio if mode == "all" else "",
                    )
                )
    title = (
        "Right answers a second after so many requests; with a number: under that cap, "
        "in MiB; ratio: median and quartiles of pairs"
    )
    head = ("mode", *(marks or ("-",) * 4), "failed", "killed", "ratio")
    return Table(title, head, tuple(rows))


def _nelson(figures: Figures) -> list[Table]:
    return [bursts(figures), under_cap(figures)]


# ---- scale ----------------------------------------------------------------------


def _cost(line: Figures | None) -> str:
    if not line:
        return "-"
    error = line["standard_error"]
    return f"{line['mib_a_worker']:.1f}" + ("" if error is None else f" ±{error:.1f}")


def _combinations(
    figures: Figures, title: str, cell: Callable[[Figures], str], cost: bool = False
) -> Table:
    heaps = figures.get("heaps", {})
    counts = sorted(
        {
            int(c)
            for modes in heaps.values()
            for m in modes.values()
            for c in m["workers"]
        }
    )
    rows = []
    for heap, modes in heaps.items():
        for key, found in modes.items():
            host, name = key.split(" ", 1)
            row = [f"{heap} MB {SHOWN[host]} {name}"]
            for count in counts:
                at = found["workers"].get(str(count))
                row.append(cell(at["summary"]) if at else "-")
            if cost:
                row.append(_cost(found.get("cost")))
            rows.append(tuple(row))
    head = ("workers", *map(str, counts), *(["one more"] if cost else []))
    return Table(title, head, tuple(rows))


def totals(figures: Figures) -> Table:
    """Total PSS, and what one more worker costs."""
    title = "Total PSS in MiB, and the fitted cost of one more worker"
    return _combinations(figures, title, lambda found: mib(found["total_pss"]), True)


def forks(figures: Figures) -> Table:
    """Seconds to fork all workers."""
    return _combinations(
        figures,
        "Seconds from the first fork to the last",
        lambda found: f"{found['fork_seconds']['median']:.2f}",
    )


def readiness(figures: Figures) -> Table:
    """Seconds from the start to ready."""
    return _combinations(
        figures,
        "Seconds from the start, loading included, to all forked and serving",
        lambda found: f"{found['ready_seconds']['median']:.1f}",
    )


def _scale(figures: Figures) -> list[Table]:
    return [totals(figures), forks(figures), readiness(figures)]


TABLES: dict[str, Callable[[Figures], list[Table]]] = {
    "allocators": allocator_tables.tables,
    "caches": cache_tables.tables,
    "cpu": _cpu,
    "instagram": _instagram,
    "learn": learn_tables.tables,
    "nelson": _nelson,
    "scale": _scale,
}


def report(figures: Figures) -> str:
    """All tables of one journal, and its notes."""
    parts = [fill(setting(figures), WIDTH)]
    parts += [
        table.terminal() for table in TABLES[figures["scenario"]](figures) if table.rows
    ]
    parts += [fill(f"Note: {note}", WIDTH) for note in figures["notes"]]
    return "\n\n".join(parts)
