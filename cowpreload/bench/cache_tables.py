"""The tables of `bench caches`: a row a mode, a column a size of the cache. Pure.

A collector that traces the cache shows in a row that grows, one that does not in a flat
one. Takes what a journal holds, complete or not.
"""

from __future__ import annotations

from collections.abc import Callable

from cowpreload.bench.render import Table
from cowpreload.bench.stats import Figures
from cowpreload.units import MIB


def _by_size(
    figures: Figures, title: str, cell: Callable[[Figures], str], foot: str = ""
) -> Table:
    caches = figures.get("caches", {})
    modes = dict.fromkeys(mode for found in caches.values() for mode in found)
    rows = tuple(
        (
            mode,
            *(
                cell(found[mode]["summary"]) if mode in found else "-"
                for found in caches.values()
            ),
        )
        for mode in modes
    )
    return Table(title, ("cache", *(f"{size} MB" for size in caches)), rows, foot)


def _ms(name: str, digits: int = 0) -> Callable[[Figures], str]:
    return lambda found: f"{1000 * found[name]['median']:.{digits}f}"


def _mib(name: str) -> Callable[[Figures], str]:
    return lambda found: f"{found[name]['median'] / MIB:.0f}"


def _settle(found: Figures) -> str:
    first, again = (found[name]["median"] for name in ("settle", "settle_again"))
    if not first:
        return ""
    return f"{1000 * first:.0f}" + (f", {1000 * again:.0f}" if again else "")


def tables(figures: Figures) -> list[Table]:
    """Pause, share, time of a request and of a full collection, memory."""
    requests = figures["method"]["plan"]["requests"]
    return [
        _by_size(
            figures,
            f"Longest pause of the worker for collecting in {requests} requests, ms of "
            "processor time",
            _ms("longest", 1),
        ),
        _by_size(
            figures,
            "Share of its processor time that went into collecting, %",
            lambda found: f"{100 * found['share']['median']:.0f}",
        ),
        _by_size(figures, "Processor time a request, ms", _ms("cpu", 2)),
        _by_size(figures, "A full collection afterwards, ms", _ms("full", 1)),
        _by_size(
            figures,
            "Pages that the first full collection afterwards copies or takes",
            lambda found: f"{found['pages']['median']:.0f}",
        ),
        _by_size(
            figures,
            "settle(), ms: when the cache is full; the longest one after that",
            _settle,
        ),
        _by_size(
            figures, "Private memory of the worker at the end, MiB", _mib("private")
        ),
        _by_size(
            figures, "Total PSS at the end, master included, MiB", _mib("total_pss")
        ),
    ]
