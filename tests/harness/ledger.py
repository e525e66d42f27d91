"""Which loss is explained by what: a kill explains the requests in flight then alone.

Takes losses of a load, and what a test says it did, when, and to how many requests at
most; gives those that nothing explains. Pure; times are of the monotonic clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.load import Loss


@dataclass(frozen=True)
class Cause:
    """Something that loses requests by its nature.

    Attributes:
        what: in a few words, as `SIGKILL`.
        most: requests that it can lose, those in flight in a killed worker for example.
        since, until: from before it began until nothing more can come of it.
        ways: how a request is lost by it, as Loss has it.
    """

    what: str
    most: int
    since: float = -math.inf
    until: float = math.inf
    ways: tuple[str, ...] = ("reset", "cut")

    def fits(self, loss: Loss) -> bool:
        """Whether the request was there meanwhile, and was lost in such a way."""
        meanwhile = loss.begun <= self.until and loss.ended >= self.since
        return meanwhile and loss.how in self.ways


@dataclass(frozen=True)
class Settled:
    """What became of the losses.

    Attributes:
        explained: how many, by each cause's `what`.
        unexplained: the others.
    """

    explained: dict[str, int]
    unexplained: tuple[Loss, ...]


@dataclass
class Ledger:
    """The causes of one test, in any order."""

    causes: list[Cause] = field(default_factory=list)

    def settle(self, losses: Sequence[Loss]) -> Settled:
        """Give each loss a cause; each cause takes as many as it can lose.

        Of those that fit, a loss takes the cause that is over first, as the later ones
        may be needed by a later loss; a cause without an end is taken last.
        """
        left = {id(cause): cause.most for cause in self.causes}
        explained: dict[str, int] = {}
        unexplained = []
        for loss in sorted(losses, key=lambda each: (each.begun, each.ended)):
            fitting = [each for each in self.causes if each.fits(loss)]
            free = [each for each in fitting if left[id(each)]]
            if not free:
                unexplained.append(loss)
                continue
            cause = min(free, key=lambda each: each.until)
            left[id(cause)] -= 1
            explained[cause.what] = explained.get(cause.what, 0) + 1
        return Settled(explained, tuple(unexplained))
