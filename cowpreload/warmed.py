"""What one warm up of a master was, and what it brought: for the board and reports.

Frozen; times in seconds, sizes in bytes. Must not import a stage or print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# Where pages that are warmed come from; the board counts them in this order.
SOURCES = ("list", "route", "file", "traffic")


@dataclass(frozen=True)
class Warming:
    """One warm up of a master, and what it brought; sizes in bytes.

    Attributes:
        pages: how many were warmed, by source.
        requests: in the master; 0 of one while the server runs.
        seconds: that the master was busy with it.
        grew: what the master grew by, which its workers share.
        total_pss: of the server before it; 0: it had no worker yet.
        grown_before: since it was ready, of the worker that was replaced first.
        grown_after: of the one in its place.
        verdict: what these two tell: `confirmed`, `not confirmed`, or "".
        age: seconds since it was over.
    """

    pages: tuple[tuple[str, int], ...] = ()
    requests: int = 0
    seconds: float = 0.0
    grew: int = 0
    total_pss: int = 0
    grown_before: int = 0
    grown_after: int = 0
    verdict: str = ""
    age: float = 0.0

    def plus(self, other: Warming) -> Warming:
        """The sum, of two parts of the start's."""
        counts = Counter(dict(self.pages)) + Counter(dict(other.pages))
        return Warming(
            by_source(counts.elements()),
            self.requests + other.requests,
            self.seconds + other.seconds,
            self.grew + other.grew,
        )


NOT_WARMED = Warming()


def by_source(sources: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The `pages` of a Warming, in the order of SOURCES."""
    counts = Counter(sources)
    return tuple((each, counts[each]) for each in SOURCES if counts[each])
