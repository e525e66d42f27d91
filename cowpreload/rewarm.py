"""When a running master warms up anew, from what its workers have served; and whether
it was worth it. Pure: no clock, no process, no board.

Takes Sights, what the master sees at a turn; gives the pages to request, which worker
to replace first, and the verdict on it. Times are counted in turns, which are check
intervals: a second, unless set otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cowpreload.candidates import Shape
from cowpreload.view import SlotView

# A page that makes less of the noted requests than one in so many is rare: neither
# waited for nor left cold for its rareness, where others are warmed.
_RARE = 200
# No new page that is not rare for so many turns, and not since half of all noted
# requests: then what there is to learn soon is learned.
SETTLED_TURNS = 10
_LEAST_NOTED = 50
# After an attempt, this many turns until the next, five times more after each.
DISTANCE_TURNS = 120
_FARTHER = 5
MOST_ATTEMPTS = 4
# No more pages at once than this: the master does nothing else meanwhile.
MOST_PAGES = 50
# The first replaced worker is judged when it has served as much as the old one, or so
# many requests a page; sooner, if it has had so many turns and each page's share.
_JUDGED_REQUESTS = 8
JUDGED_TURNS = 60
# It confirms the gain if it has grown by a quarter less.
_GAIN = 0.75


@dataclass(frozen=True)
class Sight:
    """What the master sees at a turn.

    Attributes:
        turn: how many check intervals the server has run.
        workers: that the host wants.
        views: of all slots that hold one.
        noted: requests since the server started.
        shapes: what they were, the most requested first.
    """

    turn: float
    workers: int
    views: tuple[SlotView, ...]
    noted: int
    shapes: tuple[Shape, ...]


def saving(views: Sequence[SlotView]) -> int:
    """The most bytes that a warm up could save: what all workers grew by since ready.

    A part of it is no page's first request; the first replaced worker tells.
    """
    return sum(each.grown for each in views if each.state == "ready")


def at_rest(views: Sequence[SlotView], workers: int) -> bool:
    """Whether all workers serve: nothing is reloaded, recycled or missing."""
    return len(views) == workers and all(each.state == "ready" for each in views)


@dataclass(frozen=True)
class First:
    """The worker that is replaced first, as it was.

    Attributes:
        slot, generation: of the old worker.
        requests: that it had served.
        grown: bytes since it was ready.
    """

    slot: int
    generation: int
    requests: int
    grown: int


def first_of(views: Sequence[SlotView]) -> First:
    """The one that grew most: the gain shows there first."""
    view = max(views, key=lambda each: each.grown)
    return First(view.slot, view.generation, view.requests, view.grown)


def gain(first: First, new: SlotView, turns: float, pages: int) -> bool | None:
    """Whether a warmed worker grows less than the old one did; None: too soon to tell.

    Args:
        new: the worker that is in the slot now.
        turns: since it became ready.
        pages: that were warmed.
    """
    if new.generation == first.generation or new.state != "ready":
        return None
    enough = min(first.requests, max(pages * _JUDGED_REQUESTS, _LEAST_NOTED))
    if new.requests < enough and (turns < JUDGED_TURNS or new.requests < pages):
        return None
    return new.grown <= first.grown * _GAIN


class Learner:
    """What is known of the pages, and when they are worth a warm up.

    Attributes:
        attempts: warm ups of this kind so far.
    """

    def __init__(self, worth: int, warm: Collection[str] = ()) -> None:
        """Begin.

        Args:
            worth: the least bytes that a warm up must save.
            warm: shapes that are warm on any host.
        """
        self._worth = worth
        self._warm = warm
        self._common: set[str] = set()
        self._new_at = 0.0
        self._noted_then = 0
        self._not_before = 0.0
        self._done: set[tuple[str, str]] = set()
        self._failed: set[tuple[str, str]] = set()
        self.attempts = 0

    def may_pay(self, turn: float, views: Sequence[SlotView], workers: int) -> bool:
        """Whether it is worth a look at the pages: cheap, for each turn."""
        return (
            self.attempts < MOST_ATTEMPTS
            and turn >= self._not_before
            and saving(views) >= self._worth
            and at_rest(views, workers)
        )

    def wanted(self, sight: Sight) -> list[Shape]:
        """The pages to warm up now; none while it does not pay."""
        common = [each for each in sight.shapes if each.count * _RARE >= sight.noted]
        names = {f"{each.host}{each.shape}" for each in common}
        if names - self._common:
            self._common |= names
            self._new_at, self._noted_then = sight.turn, sight.noted
        if sight.turn < self._new_at + SETTLED_TURNS:
            return []
        if sight.noted < max(_LEAST_NOTED, 2 * self._noted_then):
            return []
        if not self.may_pay(sight.turn, sight.views, sight.workers):
            return []
        new = [each for each in sight.shapes if self._is_new(each)]
        return new[:MOST_PAGES] if any(each in common for each in new) else []

    def attempted(
        self, turn: float, warmed: Sequence[Shape], in_vain: Sequence[Shape] = ()
    ) -> None:
        """There was a warm up; these were requested, and those did not survive it.

        The latter are tried once more: in a trial on a machine that had much else to
        do, no page of a site answered in time.
        """
        failed = {(each.host, each.shape) for each in in_vain}
        self._done |= {(each.host, each.shape) for each in warmed}
        self._done |= failed & self._failed
        self._failed |= failed
        self._not_before = turn + DISTANCE_TURNS * _FARTHER**self.attempts
        self.attempts += 1

    def _is_new(self, shape: Shape) -> bool:
        done = (shape.host, shape.shape) in self._done
        return not done and shape.shape not in self._warm
