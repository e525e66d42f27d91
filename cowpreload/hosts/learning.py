"""The master learns from its traffic: at its turns, about once a second.

It looks at the board (rewarm.py says when it pays), warms up anew, and has the first
worker replaced, in the watching thread's own way; the others follow if its readings
confirm the gain. Must not raise, and must end no server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from cowpreload import _core, freezes, served, warmings
from cowpreload.board import Board
from cowpreload.candidates import Shape
from cowpreload.errors import NativeError, said
from cowpreload.event_log import tell
from cowpreload.freezing import may_freeze_again
from cowpreload.hosts.rewarming import rewarm
from cowpreload.hosts.serving import Serving, as_another
from cowpreload.lifecycle import Judged
from cowpreload.paths import in_full, same_form
from cowpreload.records import FreezeReport
from cowpreload.rewarm import First, Learner, Sight, at_rest, first_of, gain
from cowpreload.routes import why_not_again
from cowpreload.settings import Settings
from cowpreload.shapes import plain_shape, shapes
from cowpreload.view import SlotView

Off = Callable[[], Collection[str]]
"""Gives the paths that the operator has switched off, as of now; must not raise."""

# How often the pages are looked at, in turns: more and more rarely.
_LOOK_TURNS, _LOOK_MOST_TURNS = 5, 60


def why_nothing(immortal: bool, uid: int) -> str:
    """Why a server warms nothing from its traffic, or "".

    Args:
        immortal: whether the heap is.
        uid: of the workers.
    """
    if not immortal:
        # Freeze and mend look at all of it, and that writes the count of each object:
        # 95 of 185 MiB on 3.11, and for good where the other workers stay.
        return "the heap is mortal, and the master would copy it"
    if not may_freeze_again():
        return (
            "the heap cannot be frozen twice (keep_mortal() was called, or there is no "
            "gc.freeze())"
        )
    return as_another(uid)


class Learning:
    """What the master of this server knows of it, from turn to turn."""

    def __init__(
        self,
        board: Board,
        settings: Settings,
        warm: Sequence[str],
        prefix: str = "",
        off: Off = tuple,
    ) -> None:
        """Begin.

        Args:
            board, settings: of this server.
            warm: the paths that were requested before the first fork.
            prefix: SCRIPT_NAME, where they begin with it and what is noted does not.
            off: called before each warm up.
        """
        self._board = board
        self._settings = settings
        self._prefix = prefix
        self._off_now = off
        known = {plain_shape(same_form(each.partition("?")[0])) for each in warm}
        self._learner = Learner(settings.warmup_worth, known)
        self._began = self._looked = time.monotonic()
        self._turned = 0.0
        self._pages: tuple[Shape, ...] = ()
        self._first: First | None = None
        self._old: dict[int, int] = {}  # generations that are to be replaced, by slot
        self._warming = 0
        self._off = False

    def turn(self, master: Serving) -> None:
        """Look, and act if it pays."""
        now = time.monotonic()
        if self._off or now - self._turned < self._settings.check_interval:
            return
        self._turned = now
        try:
            self._step(master, now)
        except master.own:
            raise
        except BaseException as error:  # a page's CancelledError, too
            self._off = True
            master.say_raised(f"cow: warm up anew: {said(error)}: not tried again")

    def _turns(self, since: float, now: float) -> float:
        return (now - since) / self._settings.check_interval

    def _step(self, master: Serving, now: float) -> None:
        views = tuple(self._board)
        if self._first is not None:
            self._judge(self._first, master, views)
        elif self._old:
            self._follow(master, views)
        elif master.is_alone() and self._is_time(now, master, views):
            self._looked = now
            self._look(master, now, views)

    def _is_time(
        self, now: float, master: Serving, views: tuple[SlotView, ...]
    ) -> bool:
        """Whether to look at the pages: 10 µs each."""
        age = self._turns(self._began, now)
        pause = min(max(age / 4, _LOOK_TURNS), _LOOK_MOST_TURNS)
        if self._learner.may_pay(age, views, master.workers()):
            pause = _LOOK_TURNS
        return self._turns(self._looked, now) >= pause

    def _look(self, master: Serving, now: float, views: tuple[SlotView, ...]) -> None:
        turn = self._turns(self._began, now)
        noted = served.noted(self._board)
        skip = self._settings.warmup_skip, self._prefix
        pages = [
            replace(each, path=in_full(self._prefix, each.path))
            for each in served.read(self._board)
            if not why_not_again(each.path, *skip)
        ]
        sight = Sight(turn, master.workers(), views, noted, tuple(shapes(pages)))
        if not self._learner.wanted(sight):
            return
        # A file is read for it: only where it counts.
        sight = replace(sight, shapes=tuple(shapes(pages, off=self._off_now())))
        wanted = self._learner.wanted(sight)
        if not wanted:
            return
        total_pss = warmings.total_pss(views)
        done = rewarm(master, self._settings, wanted)
        in_vain = [each for each in wanted if each not in done.pages]
        self._learner.attempted(turn, done.pages, () if done.interrupted else in_vain)
        tell(done.fact, master.say)
        if done.pages:
            warming = replace(done.warming, total_pss=total_pss)
            self._warming = warmings.add(self._board, warming)
            self._note(done.frozen)
            self._pages = done.pages
            self._old = {each.slot: each.generation for each in views}
            self._first = first_of(views)
            self._renew(self._first.slot)

    def _note(self, frozen: FreezeReport | None) -> None:
        if frozen is not None and frozen.seconds:
            done = frozen.objects, frozen.immortal.objects, frozen.seconds, frozen.bytes
            freezes.add(self._board, *done)

    # ---- the workers -----------------------------------------------------

    def _renew(self, slot: int) -> None:
        """Ask for the slot's worker to be replaced, when it has a ticket."""
        self._board.raw.slot[slot - 1].life.renew = 1

    def _judge(
        self, first: First, master: Serving, views: tuple[SlotView, ...]
    ) -> None:
        """The first replaced worker: does it grow less?"""
        new = next((each for each in views if each.slot == first.slot), None)
        if new is None:
            # Between two generations; unless the host wants fewer workers by now.
            if at_rest(views, master.workers()):
                self._first, self._old = None, {}
            return
        view = _read_now(new, self._board)
        turns = view.ready_age / self._settings.check_interval
        confirmed = gain(first, view, turns, len(self._pages))
        if confirmed is None:
            return
        self._first = None
        warmings.judge(self._board, self._warming, confirmed, first.grown, view.grown)
        tell(Judged(first.slot, view.grown, first.grown, confirmed), master.say)
        if not confirmed:
            self._old = {}
        for each in views:
            if self._old.get(each.slot) == each.generation:
                self._renew(each.slot)

    def _follow(self, master: Serving, views: tuple[SlotView, ...]) -> None:
        """Forget it when all have been replaced."""
        here = {each.slot: each.generation for each in views}
        if not any(here.get(slot) == each for slot, each in self._old.items()):
            self._old = {}
            master.say("cow: warmed anew: all workers are replaced")


def _read_now(view: SlotView, board: Board) -> SlotView:
    """The view with a reading of this moment; the board's may be half a minute old."""
    try:
        private = _core.take_reading(view.pid).private
    except NativeError:
        return view
    ready = board.raw.slot[view.slot - 1].judged.ready_private
    return replace(view, private=private, grown=max(0, private - ready))
