"""The memory of each mode as one picture, drawn with matplotlib (the extra `plot`).

Takes a Tried; gives a PNG. matplotlib is imported here, when it is drawn.
"""

from __future__ import annotations

from pathlib import Path

from cowpreload.tryout.advice import one_more
from cowpreload.tryout.page import title
from cowpreload.tryout.records import Tried
from cowpreload.units import MIB

_PLAIN, _OURS, _GREY = "#b5563c", "#2f6f8f", "#9a9a9a"


def draw(tried: Tried, target: Path) -> None:
    """Bars: total PSS of each mode, a bar for each number of workers."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(8, 1.6 + 0.7 * len(tried.ways)))
    place = 0.0
    ticks, names = [], []
    for each in tried.ways:
        colour = _OURS if each.way.cow else _PLAIN if each.way.preload else _GREY
        for life in each.lives:
            size = life.total_pss / MIB
            axis.barh(place, size, height=0.8, color=colour)
            cost = one_more(each)
            more = f", one more {cost / MIB:.1f}" if cost is not None else ""
            last = life is each.lives[-1]
            axis.text(size, place, f" {size:.0f}{more if last else ''}", va="center")
            ticks.append(place)
            names.append(f"{each.way.name}, {life.workers}")
            place += 1
        place += 0.6
    axis.set_yticks(ticks, names)
    axis.invert_yaxis()
    axis.margins(x=0.4)
    axis.set_xlabel("MiB of total PSS, by mode and number of workers")
    axis.set_title(title(tried), fontsize=7)
    figure.tight_layout()
    figure.savefig(target, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
