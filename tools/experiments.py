"""The documents' claims beside our figures, as Markdown. Pure.

Takes the results of `cowpreload bench` by interpreter; gives the generated parts of
README.md, docs/experiments.md and docs/when-it-will-not-help.md. What a result does not
hold (a run without PyPy, without a memory cap) is shown as "not measured".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cowpreload.bench.reports import HOSTS, TABLES, mib, setting
from cowpreload.units import MIB

Figures = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Figures]]  # by interpreter, then by scenario
ABSENT = "not measured"
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


def _try(make: Callable[[], str]) -> str:
    try:
        return make()
    except (KeyError, IndexError):
        return ABSENT


def _heap(scale: Figures) -> str:
    heaps = scale["heaps"]
    return HEAP if HEAP in heaps else next(iter(heaps))


# ---- README ---------------------------------------------------------------------


def readme(results: Mapping[str, Figures]) -> str:
    """Plain and all on both hosts: what a worker has, and what one more costs."""
    instagram, scale = results["instagram"], results["scale"]
    heap, plan = _heap(scale), instagram["method"]["plan"]
    rows = []
    for host, shown in HOSTS.items():
        for mode, name in (("plain", "preload"), ("all", "cow")):
            end = instagram["modes"][f"{host} {mode}"]["summary"]["end"]
            line = scale["heaps"][heap][f"{host} {mode}"]["cost"]
            ratio = instagram["throughput"][host]["ratio"]["median"]
            rows.append(
                (
                    f"{shown} {name}",
                    mib(end["private"], 1),
                    mib(end["shared"], 1),
                    mib(end["total_pss"]),
                    f"{ratio if mode == 'all' else 1:.2f}",
                    f"{line['mib_a_worker']:.1f}",
                )
            )
    head = ("mode", "private/worker", "shared/worker", "total PSS", "req/s")
    return (
        f"{setting(dict(instagram))}; {plan['workers']} workers, "
        f"{plan['warm'] + plan['end']} requests; MiB; req/s relative to preload; the "
        f"last column with a catalogue of {heap} MB:\n\n"
        + table((*head, "one more worker"), rows)
    )


# ---- the claims -----------------------------------------------------------------


def _ends(results: Mapping[str, Figures], part: str, *modes: str) -> str:
    found = results["instagram"]["modes"]
    return " → ".join(
        mib(found[f"uwsgi {mode}"]["summary"]["end"][part]) for mode in modes
    )


def _shared_drop(results: Mapping[str, Figures]) -> str:
    found = results["instagram"]["modes"]["uwsgi plain"]["summary"]
    return " → ".join(mib(found[phase]["shared"]) for phase in ("fresh", "warm", "end"))


def _collector(results: Mapping[str, Figures]) -> str:
    found = results["instagram"]["modes"]["uwsgi gc.disable()"]["summary"]
    enabled = found["collector"]["enabled"]
    private = _ends(results, "private", "plain", "gc.disable()")
    return f"undone: {'yes' if enabled else 'no'}; private {private}"


def _saved(results: Mapping[str, Figures], mode: str) -> str:
    found = results["instagram"]["modes"]
    before, after = (
        found[f"uwsgi {name}"]["summary"]["end"]["total_pss"]["median"]
        for name in ("plain", mode)
    )
    return f"{before / MIB:.0f} → {after / MIB:.0f} ({after / before - 1:+.0%})"


def _exit(results: Mapping[str, Figures], mode: str) -> str:
    found = results["instagram"]["modes"][f"uwsgi {mode}"]["summary"]["exit"]
    return (
        f"{found['seconds']['median']:.2f} s, {found['pages']['median']:.0f} pages a "
        f"worker, PSS {mib(found['before'])} → {mib(found['peak'])}"
    )


def _ratio(results: Mapping[str, Figures]) -> str:
    found = results["instagram"]["throughput"]["uwsgi"]["ratio"]
    return f"{found['median'] - 1:+.0%}"


def _nelson(results: Mapping[str, Figures], host: str, part: str) -> str:
    shown = []
    for mode in ("plain", "all"):
        found = results["nelson"]["memory"][f"{host} {mode}"]
        first = max(line[0] for line in found[part])
        shown.append(f"{first / MIB:.0f} → {mib(found['end'][part])}")
    return "; ".join(shown)


Row = tuple[str, str, Callable[[Mapping[str, Figures]], str], str]
CLAIMS: tuple[Row, ...] = (
    (
        "Instagram: shared memory of a fresh worker falls within seconds",
        "250 → 140",
        _shared_drop,
        "fresh, warm, at the end; a shop of 205 MB, not their site",
    ),
    (
        "Instagram: `gc.disable()` brings nothing, a library calls `gc.enable()`",
        "no change",
        _collector,
        "their msgpack; here a function that does what it did",
    ),
    (
        "Instagram: `set_threshold(0)` raises shared memory",
        "140 → 225 of 250",
        lambda results: _ends(results, "shared", "plain", "set_threshold(0)"),
        "our requests read more of the heap: counts copy what collection spares",
    ),
    (
        "Instagram: memory of a machine",
        "-25 % (-8 GB)",
        lambda results: _saved(results, "set_threshold(0)"),
        "total PSS of 4 workers, not dozens",
    ),
    (
        "the same, with all that cowpreload does",
        "",
        lambda results: _saved(results, "all"),
        "",
    ),
    (
        "Instagram: throughput",
        "+10 %",
        _ratio,
        "theirs is capacity: more workers in the memory that was saved",
    ),
    (
        "Instagram: leaving, with the collector",
        "below 10 s",
        lambda results: _exit(results, "plain"),
        "theirs: a restart of all workers of a machine, loading included",
    ),
    (
        "Instagram: leaving after `set_threshold(0)`",
        "60 s and more",
        lambda results: _exit(results, "set_threshold(0)"),
        "their machine ran out of memory and read its code from disk again",
    ),
    (
        "Instagram: leaving by `os._exit`",
        "solved",
        lambda results: _exit(results, "threshold+_exit"),
        "it drops exit codes and the handlers registered before it; cow's does not",
    ),
    (
        "Nelson: private memory of a worker, standard and patched PyPy",
        "→ 1000 to 1200; → 800",
        lambda results: _nelson(results, "PyPy", "private"),
        "PyPy plain; with us (collector off, a limit of 600 MiB). 10,000 requests",
    ),
    (
        "Nelson: shared memory of a worker, the same",
        "falls; flat",
        lambda results: _nelson(results, "PyPy", "shared"),
        "the first fall is free memory that was inherited, and is filled",
    ),
    (
        "the same on CPython with gunicorn: private",
        "",
        lambda results: _nelson(results, "gunicorn", "private"),
        "plain; with us",
    ),
    (
        "the same on CPython with gunicorn: shared",
        "",
        lambda results: _nelson(results, "gunicorn", "shared"),
        "plain; with us",
    ),
)


def claims(results: Results) -> str:
    """Point by point; memory in MB there, in MiB here."""
    rows = [
        (
            claim,
            theirs,
            *(_try(lambda m=make, r=each: m(r)) for each in results.values()),
            differs,
        )
        for claim, theirs, make, differs in CLAIMS
    ]
    return table(("claim", "theirs", *results, "what differs"), rows)


# The paper's section 6.2, requests (connections) a second.
PAPER = {5: (190.8, 67.9), 10: (269.2, 148.7), 15: (97.7, 188.8), 20: (103.2, 190.9)}


def paper(nelson: Figures) -> str:
    """The paper's table beside ours."""
    servers = list(nelson.get("throughput", {}))
    head = ["requests", "paper: standard", "patched"]
    for name in servers:
        head += [f"{name} plain", "ours", "capped plain", "ours"]
    rows = []
    fraction = nelson["method"]["plan"]["fraction"]
    for place, (mark, theirs) in enumerate(PAPER.items()):
        row = [f"{mark}k (ours: {mark * 1000 // fraction})", *map(str, theirs)]
        for name in servers:
            for cap in ("uncapped", "capped"):
                for mode in ("plain", "all"):
                    found = nelson["throughput"][name].get(cap)
                    rates = list(found[mode]["rates"].values()) if found else []
                    row.append(f"{rates[place]:.0f}" if rates else "-")
        rows.append(row)
    return table(head, rows)


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
        small = next(iter(scale["heaps"]))
        fewest = str(min(scale["method"]["plan"]["workers"]))
        ends = [
            modes[f"gunicorn {mode}"]["summary"]["end"] for mode in ("plain", "all")
        ]
        memory = [
            found["nelson"]["memory"][f"gunicorn {mode}"]["end"]["private"]["median"]
            for mode in ("plain", "all")
        ]
        rows += [
            (
                f"{version}: {fewest} workers, {small} MB: total PSS",
                *_at(scale, small, fewest),
            ),
            (
                f"{version}: {fewest} workers, {_heap(scale)} MB: total PSS",
                *_at(scale, _heap(scale), fewest),
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
