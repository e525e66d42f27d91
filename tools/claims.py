"""The documents' claims beside our figures, point by point, in Markdown. Pure.

Takes the results of `cowpreload bench` by interpreter. What a result does not hold (a
run without PyPy, without a memory cap) is shown as "not measured".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments import Figures, Results, table

from cowpreload.bench.scenario_tables import mib, ratio
from cowpreload.units import MIB

ABSENT = "not measured"


def _try(make: Callable[[], str]) -> str:
    try:
        return make()
    except (KeyError, IndexError):
        return ABSENT


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


def _cpu(results: Mapping[str, Figures]) -> str:
    return f"CPU a request: {ratio(results['cpu']['cpu']['uwsgi']['ratio'])}"


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
        _cpu,
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


def claims(results: Results, claims: Sequence[Row] = CLAIMS) -> str:
    """Point by point; memory in MB there, in MiB here."""
    rows = [
        (
            claim,
            theirs,
            *(_try(lambda m=make, r=each: m(r)) for each in results.values()),
            differs,
        )
        for claim, theirs, make, differs in claims
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
