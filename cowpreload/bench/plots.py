"""Plots of a scenario's figures, drawn with matplotlib (the extra `plot`).

Takes a journal's file; gives PNGs beside it. Each carries the hash of the file that it
was drawn from, so that tools/docs.py can tell an old picture without drawing a new
one. matplotlib is imported here and only when something is drawn.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cowpreload.bench.mode import SHOWN
from cowpreload.bench.stats import Figures
from cowpreload.units import MIB

HASH = "cowpreload-json-sha256"
PLAIN, OURS, GREY = "#b5563c", "#2f6f8f", "#9a9a9a"
MODE_COLOURS = {"no preload": GREY, "plain": PLAIN, "all": OURS}
LEARN = {  # colour and line of each mode
    "cold": (PLAIN, "-"),
    "list": (GREY, "-"),
    "auto": (OURS, "-"),
    "hidden": (OURS, "--"),
    "file": (OURS, ":"),
}


def figures_hash(path: Path) -> str:
    """What a picture of this file carries."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def drawn_from(picture: Path) -> str:
    """The hash that a picture carries; nothing if it carries none."""
    content = picture.read_bytes() if picture.exists() else b""
    _, found, rest = content.partition(HASH.encode() + b"\0")
    return rest[:64].decode(errors="replace") if found else ""


def _instagram(figures: Figures, new: Callable[..., Any]) -> Any:
    """Bars: private and shared of a worker at the end, a mode each."""
    figure, axes = new(2, 1, figsize=(8, 7))
    for axis, host in zip(axes, SHOWN, strict=True):
        modes = [
            each for each in figures.get("modes", {}).values() if each["host"] == host
        ]
        names = [each["name"] for each in modes]
        ends = [each["summary"]["end"] for each in modes]
        private = [end["private"]["median"] / MIB for end in ends]
        shared = [end["shared"]["median"] / MIB for end in ends]
        axis.barh(names, private, color=PLAIN, label="private")
        axis.barh(names, shared, left=private, color=GREY, label="shared")
        for place, value in enumerate(private):
            axis.text(value + 2, place, f"{value:.0f}", va="center", fontsize=8)
        axis.invert_yaxis()
        axis.set_title(f"{SHOWN[host]}: memory of a worker at the end", fontsize=10)
        axis.set_xlabel("MiB")
    axes[0].legend(loc="lower right", fontsize=8)
    return figure


def _nelson(figures: Figures, new: Callable[..., Any]) -> Any:
    """As the paper's figures 1 and 2: shared above, private below, a line a worker."""
    memory = figures.get("memory", {})
    figure, axes = new(
        2, len(memory), figsize=(3.1 * len(memory), 6), sharex=True, squeeze=False
    )
    for column, found in enumerate(memory.values()):
        for row, part in enumerate(("shared", "private")):
            axis = axes[row][column]
            for line in found[part]:
                points = [(i, y / MIB) for i, y in enumerate(line) if y is not None]
                x = [i * found["burst"] for i, _ in points]
                axis.plot(x, [y for _, y in points], linewidth=1)
            axis.set_ylim(bottom=0)
            axis.tick_params(labelsize=7)
        axes[0][column].set_title(found["shown"], fontsize=9)
        axes[1][column].set_xlabel("requests", fontsize=8)
    for pair in range(0, len(memory) - 1, 2):  # a host's two have one scale
        for row in axes:
            top = max(row[pair].get_ylim()[1], row[pair + 1].get_ylim()[1])
            row[pair].set_ylim(0, top)
            row[pair + 1].set_ylim(0, top)
    axes[0][0].set_ylabel("shared, MiB a worker", fontsize=8)
    axes[1][0].set_ylabel("private, MiB a worker", fontsize=8)
    return figure


def _scale(figures: Figures, new: Callable[..., Any]) -> Any:
    """Total memory over workers, a panel for each heap."""
    heaps = figures.get("heaps", {})
    figure, axes = new(1, len(heaps), figsize=(3.6 * len(heaps), 3.6), squeeze=False)
    for axis, (heap, modes) in zip(axes[0], heaps.items(), strict=True):
        for key, found in modes.items():
            host, name = key.split(" ", 1)
            points = sorted(
                (int(count), at["summary"]["total_pss"]["median"] / MIB)
                for count, at in found["workers"].items()
            )
            line = found.get("cost")
            cost = f", {line['mib_a_worker']:.0f} MiB each" if line else ""
            axis.plot(
                [x for x, _ in points],
                [y for _, y in points],
                color=MODE_COLOURS[name],
                linestyle="-" if host == "gunicorn" else "--",
                marker="o",
                markersize=3,
                label=f"{SHOWN[host]} {name}{cost}",
            )
        axis.set_title(f"catalogue of {heap} MB", fontsize=9)
        axis.set_xticks(figures["method"]["plan"]["workers"])
        axis.set_xlabel("workers", fontsize=8)
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=7)
    axes[0][0].set_ylabel("total PSS, MiB", fontsize=8)
    return figure


def _learn(figures: Figures, new: Callable[..., Any]) -> Any:
    """Over time: total PSS above, private memory of a worker below; a host a column."""
    modes = list(figures.get("modes", {}).values())
    hosts = [each for each in SHOWN if any(mode["host"] == each for mode in modes)]
    size = (4.2 * len(hosts), 6)
    figure, axes = new(2, len(hosts), figsize=size, sharex=True, squeeze=False)
    for column, host in enumerate(hosts):
        for mode in modes:
            if mode["host"] != host:
                continue
            colour, style = LEARN[mode["name"]]
            private = [
                sum(each or 0 for each in point) / len(mode["private"]) / MIB
                for point in zip(*mode["private"], strict=True)
            ]
            total = [each / MIB for each in mode["total_pss"]]
            for row, line in enumerate((total, private)):
                axes[row][column].plot(
                    mode["seconds"],
                    line,
                    color=colour,
                    linestyle=style,
                    linewidth=1.2,
                    label=mode["name"],
                )
        axes[0][column].set_title(SHOWN[host], fontsize=9)
        axes[1][column].set_xlabel("seconds of requests", fontsize=8)
        axes[1][column].set_ylim(bottom=0)
        axes[0][column].legend(fontsize=7)
        for axis in axes[:, column]:
            axis.tick_params(labelsize=7)
    axes[0][0].set_ylabel("total PSS, MiB", fontsize=8)
    axes[1][0].set_ylabel("private, MiB a worker", fontsize=8)
    return figure


DRAW: dict[str, tuple[str, Callable[[Figures, Callable[..., Any]], Any]]] = {
    "instagram": ("modes", _instagram),
    "learn": ("modes", _learn),
    "nelson": ("memory", _nelson),
    "scale": ("heaps", _scale),
}


def missing() -> str:
    """Why nothing can be drawn here; nothing if it can."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        return "matplotlib is not installed; pip install 'cowpreload[plot]'"
    return ""


def draw(path: Path) -> Path | None:
    """Draw the figures at `path`; the picture beside them, None if there is none.

    Raises:
        ImportError: `missing` says why.
    """
    figures: Figures = json.loads(path.read_text())
    needs, make = DRAW.get(figures["scenario"], ("", None))
    if make is None or not figures.get(needs):
        return None
    if missing():
        raise ImportError(missing())
    from matplotlib import pyplot

    picture = make(figures, pyplot.subplots)
    versions = figures["versions"]
    picture.suptitle(
        f"{figures['scenario']}: {versions['implementation']} {versions['python']}",
        fontsize=10,
    )
    picture.tight_layout()
    target = path.with_suffix(".png")
    metadata = {HASH: figures_hash(path), "Software": None}
    picture.savefig(target, dpi=110, metadata=metadata)
    pyplot.close(picture)
    return target
