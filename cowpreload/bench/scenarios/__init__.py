"""The scenarios: each a declared set of modes on the same application in one run.

A scenario module has `METHOD` (how it measures, one text), `PLANS` (its numbers by
size: full, quick, tiny) and `run(hall, journal, plan, options)`, which puts its
figures into the journal after each mode. Sizes are bytes, times seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

SIZES = ("full", "quick", "tiny")  # tiny is for tests of the bench itself


@dataclass(frozen=True)
class Options:
    """What a user may choose beside the scenario.

    Attributes:
        pypy: the path of a PyPy, or None: the one on PATH, if any.
    """

    pypy: str | None = None
