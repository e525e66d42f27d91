"""Does it grow? The slope of a noisy series, and how sure that is. Pure.

Takes samples in segments: what happens between two of them (a warm up anew, the exec of
a reload) may move the level, and is not called a slope. Gives units an hour.

The slope is the median of the slopes of all pairs of one segment (Theil, Sen): a peak
does not move it. Its interval is Sen's, at 95 %. That takes samples as independent of
one another, which neighbours are not; so they are first joined to the medians of BINS
seconds each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

HOUR = 3600.0
BIN = 20.0  # seconds: longer than a worker's life moves the master's memory
LEAST = 4  # bins, of which a slope can be told at all
NORMAL = 1.96  # of the normal distribution, for 95 %


@dataclass(frozen=True)
class Sample:
    """One figure at one time.

    Attributes:
        at: seconds.
        segment: what it may be compared with: samples of the same one.
    """

    at: float
    value: float
    segment: object = None


@dataclass(frozen=True)
class Slope:
    """How a series went.

    Attributes:
        first, last: the medians of its first and its last bin.
        per_hour: the slope; 0 where there are too few samples to tell one.
        low, high: its interval; the slope is in it in 95 of 100 runs. None: too few
            samples to tell.
        bins: how many it was made of.
    """

    first: float
    last: float
    per_hour: float
    low: float | None
    high: float | None
    bins: int

    def is_over(self, most: float) -> bool:
        """Whether the series surely grows by more than this in an hour."""
        return self.low is not None and self.low > most


def binned(samples: Iterable[Sample], width: float = BIN) -> list[Sample]:
    """Each segment's medians of `width` seconds, in the order of time."""
    found: dict[tuple[object, int], list[Sample]] = {}
    for each in samples:
        found.setdefault((each.segment, int(each.at // width)), []).append(each)
    made = [
        Sample(median(s.at for s in held), median(s.value for s in held), segment)
        for (segment, _), held in found.items()
    ]
    return sorted(made, key=lambda each: each.at)


def _variance(bins: Sequence[Sample]) -> float:
    """Of Kendall's statistic, the sum of the segments'."""
    counts: dict[object, int] = {}
    for each in bins:
        counts[each.segment] = counts.get(each.segment, 0) + 1
    return sum(n * (n - 1) * (2 * n + 5) / 18 for n in counts.values())


def slope(samples: Iterable[Sample], width: float = BIN) -> Slope | None:
    """The slope of a series; None if it is empty."""
    bins = binned(samples, width)
    if not bins:
        return None
    first, last = bins[0].value, bins[-1].value
    found = sorted(
        (b.value - a.value) / (b.at - a.at) * HOUR
        for a, b in combinations(bins, 2)
        if a.segment == b.segment and b.at > a.at
    )
    if len(bins) < LEAST or not found:
        return Slope(first, last, 0.0, None, None, len(bins))
    reach = NORMAL * math.sqrt(_variance(bins))
    lower = int((len(found) - reach) / 2)
    upper = math.ceil((len(found) + reach) / 2)
    return Slope(
        first,
        last,
        median(found),
        found[lower] if lower >= 0 else None,
        found[upper] if upper < len(found) else None,
        len(bins),
    )
