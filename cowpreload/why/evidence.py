"""What speaks for a cause on one page: `changes` finds it, `owners` names the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from cowpreload.causes import Cause


@dataclass(frozen=True)
class Plain:
    """A changed block that is no object: whose it is decides the cause."""

    start: int
    offsets: tuple[int, ...]  # bytes from its start
    static: bool  # in a file's data, not on the heap
    words: int = 1  # that changed, of static data: one for all of a page


@dataclass
class Evidence:
    """All that speaks for a cause on one page."""

    page: int
    found: Counter[tuple[Cause, str]] = field(default_factory=Counter)
    plain: list[Plain] = field(default_factory=list)
    containers: Counter[int] = field(default_factory=Counter)  # whose storage changed

    # Changed code without a file, and what it was added as.
    codes: dict[int, tuple[Cause, str]] = field(default_factory=dict)

    def add(self, cause: Cause, label: str, count: int = 1) -> None:
        self.found[cause, label] += count

    def rename(self, old: tuple[Cause, str], label: str) -> None:
        """Say of one that was added as `old` what it is."""
        if self.found[old] > 0:
            self.found[old] -= 1
            self.found[old[0], label] += 1
        if not self.found[old]:
            del self.found[old]
