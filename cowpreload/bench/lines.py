"""Memory over time, a line a worker: a replacement goes on where its predecessor was.

Takes looks at a server; gives lists of bytes. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from cowpreload.bench.observe import Memory
from cowpreload.bench.stats import Figures, spread


def seated(seats: Sequence[int], pids: Sequence[int]) -> list[int]:
    """Who sits where: those who stay keep their seats, new ones fill the others. Pure.

    A seat that nobody has taken yet holds 0.
    """
    arrived = [pid for pid in pids if pid not in seats]
    seats = [pid if pid in pids else 0 for pid in seats]
    seats += [0] * (len(pids) - len(seats))
    return [pid or (arrived.pop(0) if arrived else 0) for pid in seats]


class Lines:
    """Memory after each burst, one line a seat; bytes, None where nobody sat."""

    def __init__(self, workers: int) -> None:
        self._seats: list[int] = [0] * workers
        self._replaced = 0
        self._private: list[list[int | None]] = [[] for _ in range(workers)]
        self._shared: list[list[int | None]] = [[] for _ in range(workers)]
        self._totals: list[int] = []

    def add(self, memory: Memory) -> None:
        """One more point of each line."""
        by_pid = {each.pid: each for each in memory.workers}
        before = self._seats
        self._seats = seated(before, list(by_pid))[: len(before)]
        self._replaced += sum(
            bool(a) and bool(b) and a != b
            for a, b in zip(before, self._seats, strict=True)
        )
        for seat, pid in enumerate(self._seats):
            found = by_pid.get(pid)
            self._private[seat].append(found.private if found else None)
            self._shared[seat].append(found.shared if found else None)
        self._totals.append(memory.total_pss)

    def figures(self) -> Figures:
        """What was added, and its last points."""
        last = [line[-1] for line in self._private]
        last_shared = [line[-1] for line in self._shared]
        return {
            "private": self._private,
            "shared": self._shared,
            "total_pss": self._totals,
            "replaced": self._replaced,
            "end": {
                "private": spread([each for each in last if each is not None], 0),
                "shared": spread([each for each in last_shared if each is not None], 0),
                "total_pss": self._totals[-1],
                "most_total_pss": max(self._totals),
            },
        }
