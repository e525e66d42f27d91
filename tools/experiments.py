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


def readme(results: Mapping[str, Figures]) -> str:
    """Plain and all on both hosts: what a worker has, what a request and one more cost.

    Memory is of `instagram`, the last worker of `scale`, processor time of `cpu`.
    """
    instagram, scale, cpu = results["instagram"], results["scale"], results["cpu"]
    heap, plan = _heap(scale), instagram["method"]["plan"]
    rows = []
    for host, shown in SHOWN.items():
        for mode, name in (("plain", "preload"), ("all", "cow")):
            end = instagram["modes"][f"{host} {mode}"]["summary"]["end"]
            line = scale["heaps"][heap][f"{host} {mode}"]["cost"]
            rows.append(
                (
                    f"{shown} {name}",
                    mib(end["private"], 1),
                    mib(end["shared"], 1),
                    mib(end["total_pss"]),
                    f"{line['mib_a_worker']:.1f}",
                    ratio(cpu["cpu"][host]["ratio"]) if mode == "all" else "1",
                )
            )
        rows += _learned(results, host)
    head = ("mode", "private/worker", "shared/worker", "total PSS", "one more worker")
    return (
        f"{setting(dict(instagram))}; {plan['workers']} workers, "
        f"{plan['warm'] + plan['end']} requests; MiB; one more worker with a catalogue "
        f"of {heap} MB; processor time of a request relative to preload, median and "
        f"quartiles of {cpu['cpu']['gunicorn']['ratio']['n']} pairs, from a run of its "
        "own:\n\n" + table((*head, "CPU a request"), rows) + _beside(results)
    )


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


def _pair(before: float, after: float) -> tuple[str, str, str]:
    saved = before - after
    return f"{before:.0f}", f"{after:.0f}", f"{saved:.0f} ({saved / before:.0%})"


def _at(scale: Figures, heap: str, workers: str) -> tuple[str, str, str]:
    pair = [
        scale["heaps"][heap][f"gunicorn {mode}"]["workers"][workers]["summary"]
        for mode in ("plain", "all")
    ]
    return _pair(*(each["total_pss"]["median"] / MIB for each in pair))


def limits(results: Results) -> str:
    """Cases in which little is saved, plain and with all, in MiB, on gunicorn."""
    rows: list[tuple[str, ...]] = []
    for version, found in results.items():
        scale, modes = found["scale"], found["instagram"]["modes"]
        heaps = dict.fromkeys((next(iter(scale["heaps"])), _heap(scale)))
        fewest = str(min(scale["method"]["plan"]["workers"]))
        ends = [
            modes[f"gunicorn {mode}"]["summary"]["end"] for mode in ("plain", "all")
        ]
        memory = [
            found["nelson"]["memory"][f"gunicorn {mode}"]["end"]["private"]["median"]
            for mode in ("plain", "all")
        ]
        rows += [
            *(
                (
                    f"{version}: {fewest} workers, {heap} MB: total PSS",
                    *_at(scale, heap, fewest),
                )
                for heap in heaps
            ),
            (
                f"{version}: requests that read most of the heap: private a worker",
                *_pair(*(each["private"]["median"] / MIB for each in ends)),
            ),
            (
                f"{version}: memory that requests make (/nelson/): private a worker",
                *_pair(*(each / MIB for each in memory)),
            ),
        ]
    return table(("case", "plain", "with all", "saved"), rows)
