"""The table of the scenario `learn`: what a server finds to warm, and what it brings.

Takes what a journal holds, complete or not; gives text. Sizes are shown in MiB. Pure.
"""

from __future__ import annotations

from typing import Any

from cowpreload.bench.mode import SHOWN
from cowpreload.bench.render import Table
from cowpreload.bench.stats import Figures
from cowpreload.units import MIB

_SHORT = {"list": "l", "route": "r", "file": "f", "traffic": "t"}


def _mib(size: float, digits: int = 0) -> str:
    return f"{size / MIB:.{digits}f}"


def _pages(warming: Any) -> str:
    """`4l` of a list, `6r` of routes."""
    return "+".join(
        f"{count}{_SHORT[source]}" for source, count in warming["pages"].items()
    )


def of_list(figures: Figures, key: str) -> float | None:
    """Total PSS at the end, relative to that with a hand-written list."""
    modes = figures.get("modes", {})
    listed = modes.get(f"{modes[key]['host']} list")
    if listed is None:
        return None
    return float(modes[key]["end"]["total_pss"] / listed["end"]["total_pss"])


def found(figures: Figures) -> Table:
    """A row a mode."""
    rows = []
    for key, each in figures.get("modes", {}).items():
        end, ratio = each["end"], of_list(figures, key)
        warm = [one for one in each["warmings"] if one["pages"]]
        rows.append(
            (
                f"{SHOWN[each['host']]} {each['name']}",
                _mib(end["private"]["median"], 1),
                _mib(end["most_total_pss"]),
                _mib(end["total_pss"]),
                "-" if ratio is None else f"{ratio:.2f}",
                ", ".join(map(_pages, warm)) or "-",
                ", ".join(f"{one['seconds']:.1f}" for one in warm) or "-",
                "→".join(map(_mib, each["master"])),
                str(each["replaced"]),
                str(each["lost"]),
            )
        )
    plan = figures["method"]["plan"]
    title = (
        f"{plan['workers']} workers, {plan['bursts']} bursts of {plan['burst']} "
        "requests; MiB: private of a worker at the end; total PSS, its highest, at the "
        "end, and relative to the list's; warm ups: pages (l listed, r of routes, f of "
        "the file, t of traffic) and seconds of the master; its memory at first and at "
        "the end; workers replaced; requests lost"
    )
    head = ("mode", "private", "most", "PSS", "of list", "pages", "busy", "master")
    return Table(title, (*head, "new", "lost"), tuple(rows))


def tables(figures: Figures) -> list[Table]:
    """All of the scenario."""
    return [found(figures)]
