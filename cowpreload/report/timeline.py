"""What was recorded, as series over time, a server each; and as a picture.

Takes the lines of a file that `cowpreload record` wrote; those that are no readings are
counted and left out. Needs matplotlib, the extra `plot`, for the picture alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cowpreload.units import MIB

COLOURS = {
    "max-private": "#d62728",
    "max-growth": "#ff7f0e",
    "budget": "#9467bd",
    "max-private-hard": "#000000",
    "unheeded": "#8c564b",
    "room": "#9467bd",
    "pressure": "#e377c2",
    "renewed": "#2ca02c",
    "ended": "#7f7f7f",
}
_MASTER = "#4d4d4d"
_MOST_NAMED = 12  # slots in a legend


@dataclass(frozen=True)
class Mark:
    """A worker that was replaced: when it was seen, its slot, and why.

    Attributes:
        reason: one of view.REASONS, or `ended`: not by a limit, nor by a wish.
    """

    at: float
    slot: int
    reason: str


@dataclass
class Timeline:
    """One server; lists have an item a reading.

    Attributes:
        times: seconds since the epoch.
        master: PSS, bytes.
        slots: PSS of each, bytes; 0 where it had no worker.
        memory: what the server could take, at the last reading; bytes, 0: unknown.
    """

    name: str
    times: list[float] = field(default_factory=list)
    master: list[int] = field(default_factory=list)
    slots: dict[int, list[int]] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    memory: int = 0

    @property
    def total(self) -> list[int]:
        """PSS of the whole server, bytes."""
        rows = [self.master, *self.slots.values()]
        return [sum(each) for each in zip(*rows, strict=True)]


def timelines(lines: Iterable[str]) -> tuple[list[Timeline], int]:
    """The servers in the order in which they were seen; and how many lines are none."""
    found: dict[int, Timeline] = {}
    known: dict[tuple[int, int], int] = {}
    bad = 0
    for line in lines:
        try:
            reading = json.loads(line)
            at, servers = float(reading["at"]), list(reading["servers"])
            for server in servers:
                _add(found, known, at, server)
        except (ValueError, KeyError, TypeError):
            bad += bool(line.strip())
    return list(found.values()), bad


def _add(
    found: dict[int, Timeline],
    known: dict[tuple[int, int], int],
    at: float,
    server: dict[str, Any],
) -> None:
    master = server["master"]
    pid = int(master["pid"])
    rows = {int(each["slot"]): each for each in server["slots"]}
    figures = {slot: int(each["pss"]) for slot, each in rows.items()}
    what = " ".join(each for each in (master["host"], master["application"]) if each)
    line = found.setdefault(pid, Timeline(f"master {pid} {what}".strip()))
    for slot in figures:
        line.slots.setdefault(slot, [0] * len(line.times))
    for slot, series in line.slots.items():
        series.append(figures.get(slot, 0))
    line.times.append(at)
    line.master.append(int(master["pss"]))
    line.memory = int(server["totals"]["memory"])
    for slot, each in rows.items():
        before = known.get((pid, slot))
        known[pid, slot] = int(each["generation"])
        if before is not None and known[pid, slot] != before:
            line.marks.append(Mark(at, slot, _reason(each)))


def _reason(slot: dict[str, Any]) -> str:
    last = slot.get("last")
    if last is None or last["generation"] != slot["generation"] - 1:
        return "ended"
    return str(last["reason"])


def draw(lines: Sequence[Timeline], path: Path) -> None:
    """Write the picture, PNG or SVG by the name's end.

    Raises:
        ImportError: there is no matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(
        len(lines),
        1,
        figsize=(11, 1 + 4.2 * len(lines)),
        squeeze=False,
        layout="constrained",
    )
    for axes, line in zip(grid[:, 0], lines, strict=True):
        _draw(axes, line, pyplot.get_cmap("viridis"))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _draw(axes: Any, line: Timeline, colours: Any) -> None:
    times = [datetime.fromtimestamp(each) for each in line.times]
    slots = sorted(line.slots)
    rows = [line.master, *(line.slots[each] for each in slots)]
    names = ["master", *(f"worker {each}" for each in slots)]
    if len(slots) > _MOST_NAMED:
        names[1:] = [f"workers {slots[0]} to {slots[-1]}", *["_"] * (len(slots) - 1)]
    steps = [0.15 + 0.8 * at / max(1, len(slots) - 1) for at in range(len(slots))]
    axes.stackplot(
        times,
        [[each / MIB for each in row] for row in rows],
        labels=names,
        colors=[_MASTER, *map(colours, steps)],
        alpha=0.85,
        linewidth=0,
    )
    _mark(axes, line, slots, rows)
    most = max(line.total, default=0)
    if line.memory and line.memory < 3 * most:
        axes.axhline(line.memory / MIB, color="#d62728", linestyle="--", label="limit")
    axes.set_title(f"{line.name}: PSS, {most / MIB:.0f} MiB at most", fontsize=10)
    axes.set_ylabel("MiB")
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)


def _mark(
    axes: Any, line: Timeline, slots: Sequence[int], rows: Sequence[Sequence[int]]
) -> None:
    """A triangle on the band of the worker that came, coloured by what ended the old
    one."""
    places = {at: index for index, at in enumerate(line.times)}
    for reason, colour in COLOURS.items():
        marks = [each for each in line.marks if each.reason == reason]
        if not marks:
            continue
        heights = [
            sum(row[places[each.at]] for row in rows[: slots.index(each.slot) + 2])
            for each in marks
        ]
        axes.scatter(
            [datetime.fromtimestamp(each.at) for each in marks],
            [each / MIB for each in heights],
            marker="v",
            s=36,
            color=colour,
            edgecolors="white",
            linewidths=0.6,
            zorder=3,
            label=f"{len(marks)} {reason}",
        )
