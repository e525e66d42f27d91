"""The tables of `bench allocators`: the shop, the page of the paper, the exit. Pure.

Takes what a journal holds, complete or not. An allocator that is not installed is a
row that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cowpreload.bench.render import Table
from cowpreload.bench.stats import Figures
from cowpreload.units import MIB

Cells = Callable[[Figures], Sequence[str]]


def _rows(figures: Figures, cells: Cells, count: int) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    for name, found in figures.get("allocators", {}).items():
        if "missing" in found:
            rows.append((name, "not installed", *[""] * (count - 1)))
        else:
            rows.append((name, *cells(found["summary"])))
    return tuple(rows)


def _mib(spread: Figures, digits: int = 0) -> str:
    return f"{spread['median'] / MIB:.{digits}f}"


def ratio(spread: Figures) -> str:
    """The median of the pairs with its quartiles; "-" of too few; of the reference: 1.

    A short block is a few ticks of 10 ms: one or two pairs say nothing.
    """
    if spread["n"] < 3:
        return "-"
    low, high = spread["quartiles"]
    if low == high == spread["median"] == 1:
        return "1"
    return f"{spread['median']:.2f} ({low:.2f} to {high:.2f})"


def _page(page: str) -> Cells:
    def cells(found: Figures) -> Sequence[str]:
        of = found[page]
        return (
            *([_mib(found["fresh"]["total_pss"])] if page == "site" else []),
            _mib(of["private"], 1),
            _mib(of["total_pss"]),
            f"{of['faults']['median']:.1f}",
            ratio(of["ratio"]),
        )

    return cells


def _exit(found: Figures) -> Sequence[str]:
    gone = found["exit"]
    return (
        f"{1000 * gone['cpu']['median']:.0f}",
        f"{gone['pages']['median']:.0f}",
        _mib(gone["grew"]),
    )


def tables(figures: Figures) -> list[Table]:
    """Memory, faults and processor time of both pages; what an exit costs."""
    plan = figures["method"]["plan"]
    served = plan["warm"] + plan["pairs"] * plan["block"]
    head = ("private", "PSS", "faults", "CPU a request")
    return [
        Table(
            f"The shop, {plan['workers']} workers, {served} requests; MiB: total PSS "
            "before the first one, private of a worker and total PSS after the last; "
            "minor faults a request; processor time relative to pymalloc plain, median "
            "and quartiles of pairs",
            ("allocator", "fresh PSS", *head),
            _rows(figures, _page("site"), 5),
        ),
        Table(
            f"Then {plan['nelson'][0] * plan['nelson'][1]} times /nelson/, the same",
            ("allocator", *head),
            _rows(figures, _page("nelson"), 4),
        ),
        Table(
            "All leave: ms of processor time and pages copied, a worker; MiB that "
            "total PSS grew by",
            ("allocator", "ms", "pages", "PSS"),
            _rows(figures, _exit, 3),
        ),
    ]
