"""Medians with their spread, and straight lines through points. Pure.

Takes plain numbers, gives plain numbers: a machine that does other work disturbs
times, so no figure stands without its quartiles and extremes.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

Figures = dict[str, Any]


def spread(values: Sequence[float], digits: int = 3) -> Figures:
    """Median, quartiles and extremes of `values`, of which there must be one."""
    low, middle, high = (
        statistics.quantiles(values, n=4, method="inclusive")
        if len(values) > 1
        else [values[0]] * 3
    )
    named = {
        "median": middle,
        "quartiles": [low, high],
        "range": [min(values), max(values)],
    }
    return {"n": len(values), **_rounded(named, digits)}


def _rounded(named: Figures, digits: int) -> Figures:
    return {
        name: [round(each, digits) for each in value]
        if isinstance(value, list)
        else round(value, digits)
        for name, value in named.items()
    }


@dataclass(frozen=True)
class Line:
    """`y = slope * x + start`, by least squares.

    Attributes:
        error: the standard error of the slope; 0 where two points leave no freedom.
    """

    slope: float
    start: float
    error: float


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """The line of least squares through `points`.

    Raises:
        ValueError: fewer than two different x.
    """
    if len({x for x, _ in points}) < 2:
        raise ValueError("a line needs points at two places")
    xs, ys = zip(*points, strict=True)
    slope, start = statistics.linear_regression(xs, ys)
    count, mean_x = len(xs), statistics.fmean(xs)
    width = sum((x - mean_x) ** 2 for x in xs)
    rest = sum((y - slope * x - start) ** 2 for x, y in points)
    error = sqrt(rest / (count - 2) / width) if count > 2 else 0.0
    return Line(slope, start, error)
