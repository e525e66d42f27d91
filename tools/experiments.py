"""The results of `cowpreload bench` as the documents show them, in Markdown. Pure.

Takes results by interpreter; gives the generated parts of README.md, of
docs/experiments.md (its tables) and of docs/when-it-will-not-help.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cowpreload.bench.mode import SHOWN
from cowpreload.bench.scenario_tables import TABLES, mib, ratio, setting
from cowpreload.units import MIB

Figures = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Figures]]  # by interpreter, then by scenario
HEAP = "250"  # MB of the scale scenario that README shows, if it was measured


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of text."""
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def tables(figures: Figures) -> str:
    """All tables of one scenario, with what it ran on."""
    made = [each for each in TABLES[figures["scenario"]](dict(figures)) if each.rows]
    machine = figures["machine"]
    on = (
        f"{setting(dict(figures))}; {machine['cores']} cores, "
        f"{machine['memory'] / (1 << 30):.0f} GiB, Linux {machine['kernel']}."
    )
    notes = [f"Note: {note}." for note in figures["notes"]]
    return "\n\n".join([on, *(each.markdown() for each in made), *notes])


def _heap(scale: Figures) -> str:
    heaps = scale["heaps"]
    return HEAP if HEAP in heaps else next(iter(heaps))


# ---- README ---------------------------------------------------------------------


ALONE = "no preload"
MODES = {ALONE: ALONE, "plain": "preload", "all": "cow"}
FEW = (1, 2, 4)  # workers


def readme(results: Mapping[str, Figures]) -> str:
    """The modes of both hosts: what a worker has, what a request and one more cost.

    Memory is of `instagram`, the last worker of `scale`, processor time of `cpu`.
    """
    instagram, scale, cpu = results["instagram"], results["scale"], results["cpu"]
    heap, plan = _heap(scale), instagram["method"]["plan"]
    rows = []
    for host, shown in SHOWN.items():
        for mode, name in MODES.items():
            key = f"{host} {mode}"
            if key not in instagram["modes"]:
                continue
            end = instagram["modes"][key]["summary"]["end"]
            at = scale["heaps"][heap].get(key)
            rows.append(
                (
                    f"{shown} {name}",
                    mib(end["private"], 1),
                    mib(end["shared"], 1),
                    mib(end["total_pss"]),
                    f"{at['cost']['mib_a_worker']:.1f}" if at else "-",
                    _cpu(cpu["cpu"][host], mode),
                )
            )
        rows += _learned(results, host)
    head = ("mode", "private/worker", "shared/worker", "total PSS", "one more worker")
    return (
        f"{setting(dict(instagram))}; {plan['workers']} workers, "
        f"{plan['warm'] + plan['end']} requests; MiB; one more worker with a catalogue "
        f"of {heap} MB; processor time of a request relative to preload, median and "
        f"quartiles of {cpu['cpu']['gunicorn']['ratio']['n']} pairs, from a run of its "
        "own:\n\n"
        + table((*head, "CPU a request"), rows)
        + _beside(results)
        + _small_site(scale)
    )


def _small_site(scale: Figures) -> str:
    """A heap as small as of most sites, with few workers; nothing if not measured."""
    heap, modes = next(iter(scale["heaps"].items()))
    if f"gunicorn {ALONE}" not in modes:
        return ""
    rows = [
        (
            f"{SHOWN[host]} {name}",
            *(_total(modes.get(f"{host} {mode}"), count) for count in FEW),
        )
        for host in SHOWN
        for mode, name in MODES.items()
    ]
    return (
        f"\n\nThe same shop with a catalogue of {heap} MB, as small as many a site; "
        "total PSS in MiB:\n\n" + table(("mode", *map(_workers, FEW)), rows)
    )


def _cpu(found: Figures, mode: str) -> str:
    return {"plain": "1", "all": ratio(found["ratio"])}.get(mode, "-")


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _total(mode: Figures | None, workers: int) -> str:
    """Total PSS of a mode with so many workers, in MiB."""
    at = mode["workers"].get(str(workers)) if mode else None
    return mib(at["summary"]["total_pss"]) if at else "-"


def _learned(results: Mapping[str, Figures], host: str) -> list[tuple[str, ...]]:
    """The row of a server that finds by itself what to warm, if it was measured."""
    found = results.get("learn", {}).get("modes", {}).get(f"{host} hidden")
    if found is None or not found["replaced"]:
        return []
    end = found["end"]
    return [
        (
            f"{SHOWN[host]} cow, nothing configured",
            mib(end["private"], 1),
            mib(end["shared"], 1),
            f"{end['total_pss'] / MIB:.0f}",
            *("-", "-"),
        )
    ]


def _beside(results: Mapping[str, Figures]) -> str:
    """What the rows without a list are to be compared with: those of their run."""
    learn = results.get("learn")
    if learn is None:
        return ""
    plan = learn["method"]["plan"]

    def total(name: str) -> str:
        return ", ".join(
            f"{SHOWN[host]} {learn['modes'][key]['end']['total_pss'] / MIB:.0f}"
            for host in SHOWN
            if (key := f"{host} {name}") in learn["modes"]
        )

    return (
        "\n\nNothing configured: `cow-warmup = auto` alone, and no routes known: what "
        "it warms, it has learned from its traffic. Of a run of its own, of "
        f"{plan['bursts'] * plan['burst']} requests, in which the total PSS with a "
        f"hand-written list was {total('list')}, and without any warm up "
        f"{total('cold')}."
    )


# ---- when it will not help ------------------------------------------------------


def _row(case: str, *sizes: float | None) -> tuple[str, ...]:
    """A case; MiB without preload, with it, with ours; saved over the better two."""
    best = min(each for each in sizes[:-1] if each is not None)
    ours = sizes[-1] or 0.0
    shown = ("-" if each is None else f"{each:.0f}" for each in sizes)
    return (case, *shown, f"{best - ours:.0f} ({(best - ours) / best:.0%})")


def _few(version: str, scale: Figures) -> list[tuple[str, ...]]:
    """Few workers, with the smallest heap and the one that README shows."""
    rows = []
    counts = scale["method"]["plan"]["workers"]
    for heap in dict.fromkeys((next(iter(scale["heaps"])), _heap(scale))):
        modes = [scale["heaps"][heap].get(f"gunicorn {mode}") for mode in MODES]
        for count in [each for each in FEW if each in counts]:
            found = [
                mode["workers"].get(str(count)) if mode else None for mode in modes
            ]
            totals = [
                each["summary"]["total_pss"]["median"] / MIB if each else None
                for each in found
            ]
            rows.append(
                _row(f"{version}: {_workers(count)}, {heap} MB: total PSS", *totals)
            )
    return rows


def limits(results: Results) -> str:
    """Few workers, and cases in which little is saved, in MiB, on gunicorn."""
    rows: list[tuple[str, ...]] = []
    for version, found in results.items():
        modes = found["instagram"]["modes"]
        ends = [
            modes[key]["summary"]["end"]["private"]["median"] / MIB
            if (key := f"gunicorn {mode}") in modes
            else None
            for mode in MODES
        ]
        made = [
            found["nelson"]["memory"][f"gunicorn {mode}"]["end"]["private"]["median"]
            / MIB
            for mode in ("plain", "all")
        ]
        rows += _few(version, found["scale"])
        rows.append(
            _row(
                f"{version}: requests that read most of the heap: private a worker",
                *ends,
            )
        )
        rows.append(
            _row(
                f"{version}: memory that requests make (/nelson/): private a worker",
                None,
                *made,
            )
        )
    return table(("case", "no preload", "preload", "cow", "saved"), rows)
