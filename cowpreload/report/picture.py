"""A Sharing as a picture: the address space, coloured by cause, and a bar a cause.

Needs matplotlib, the extra `plot`; imported only when a picture is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cowpreload.causes import Cause, Sharing, Span
from cowpreload.units import MIB

_COLUMNS = 256
_ROWS = 320  # at most; a cell then stands for several pages
_SHARED, _GAP = (0.90, 0.90, 0.90), (1.0, 1.0, 1.0)
_MOST_SPAN = 4 * 1024 * MIB  # a reservation, not memory
COLOURS = {
    Cause.REFCOUNT: "#d62728",
    Cause.COLLECTOR: "#9467bd",
    Cause.HASH: "#e377c2",
    Cause.SPECIALIZATION: "#ff7f0e",
    Cause.COUNTERS: "#ffbb78",
    Cause.STORAGE: "#8c564b",
    Cause.ATTRIBUTES: "#bcbd22",
    Cause.ALLOCATOR: "#2ca02c",
    Cause.INTERPRETER: "#17becf",
    Cause.LIBRARY: "#1f77b4",
    Cause.STACK: "#aec7e8",
    Cause.NEW: "#98df8a",
    Cause.UNEXPLAINED: "#000000",
}


def shown(sharing: Sharing) -> list[Span]:
    """The mappings that have private pages, but for huge reservations."""
    starts = [run.start for run in sharing.runs]
    return [
        span
        for span in sharing.spans
        if span.end - span.start <= _MOST_SPAN
        and any(span.start <= start < span.end for start in starts)
    ]


def cells(sharing: Sharing) -> tuple[list[Cause | None], int, list[tuple[int, str]]]:
    """The address space without its gaps, as a line of cells. Pure.

    Returns:
        The cause of each cell, None if it is shared or not there; pages a cell; and
        (first cell, name) of each mapping.
    """
    spans = shown(sharing)
    size = sharing.page_size
    total = sum((span.end - span.start) // size for span in spans)
    scale = max(1, -(-total // (_COLUMNS * _ROWS)))
    line: list[Cause | None] = []
    names = []
    for span in spans:
        names.append((len(line), span.name))
        room: list[Cause | None] = [None] * (
            -(-((span.end - span.start) // size) // scale)
        )
        for run in sharing.runs:
            if span.start <= run.start < span.end:
                first = (run.start - span.start) // size
                for page in range(first, first + run.pages):
                    if page // scale < len(room):
                        room[page // scale] = run.cause
        line += room
    return line, scale, names


def draw(sharing: Sharing, path: Path) -> None:
    """Write the picture.

    Raises:
        ImportError: there is no matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.colors import to_rgb

    line, scale, names = cells(sharing)
    rows = max(1, -(-len(line) // _COLUMNS))
    colours: list[Any] = [
        to_rgb(COLOURS[cause]) if cause else _SHARED for cause in line
    ]
    colours += [_GAP] * (rows * _COLUMNS - len(colours))
    grid = [colours[at : at + _COLUMNS] for at in range(0, len(colours), _COLUMNS)]
    figure, (space, bars) = pyplot.subplots(
        1, 2, figsize=(13, 7), width_ratios=(3, 2), layout="constrained"
    )
    space.imshow(grid, aspect="auto", interpolation="nearest")
    space.set_xticks([])
    space.set_yticks(*_ticks(names, len(line)))
    space.set_title(
        f"worker {sharing.pid}: one point is {scale * sharing.page_size // 1024} KiB; "
        "grey is shared"
    )
    _bars(bars, sharing)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _ticks(names: list[tuple[int, str]], total: int) -> tuple[list[int], list[str]]:
    """Rows and names of the mappings that are high enough for a label."""
    places: list[int] = []
    labels: list[str] = []
    ends = [start for start, _name in names[1:]] + [total]
    for (start, name), end in zip(names, ends, strict=True):
        row = start // _COLUMNS
        high = (end - start) // _COLUMNS >= max(1, total // _COLUMNS // 40)
        if high and (not places or row - places[-1] > total // _COLUMNS // 50):
            places.append(row)
            labels.append(name[:24])
    return places, labels


def _bars(axes: Any, sharing: Sharing) -> None:
    rows = sharing.rows[::-1]
    sizes = [row.pages * sharing.page_size / MIB for row in rows]
    axes.barh(
        [row.cause.value for row in rows],
        sizes,
        color=[COLOURS[row.cause] for row in rows],
    )
    for place, size in enumerate(sizes):
        axes.text(size, place, f" {size:.1f}", va="center")
    axes.margins(x=0.12)
    axes.set_xlabel("MiB")
    axes.set_title(
        f"{sharing.private / MIB:.1f} MiB private"
        + (f", CPython {sharing.version}" if sharing.version else "")
    )
    axes.spines[["top", "right"]].set_visible(False)
