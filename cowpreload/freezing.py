"""Freeze: make the loaded heap one that neither collector nor counts touch again.

Takes the walk that makes objects immortal (or none); gives a FreezeReport. Called
once, in the master, after the audit and right before the first fork, and again only
when the heap is loaded anew: a freeze at every fork leaks in a master that keeps
forking (Airflow, PR 60505). In further interpreters of the process it is called in
each, so it must not import the native core; the C heap is the next stage's, at the
end. `thaw` comes before the stages that look at the heap.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from cowpreload import collector, holders
from cowpreload.errors import RAISED
from cowpreload.records import FreezeReport, WalkReport

Kept = TypeVar("Kept")
Walk = Callable[[list[Any], holders.Held], tuple[str, int, int, int, int, int]]
"""Takes what stays mortal, and whom to ask; gives the fields of a WalkReport."""


class _Kept:
    """What the next freeze leaves mortal, held until then; and who froze last.

    Attributes:
        frozen_by: the process of our last freeze; 0: there was none.
        thawed: the application had frozen something itself.
        frozen: the heap is frozen since, whoever wanted it.
        ever: whether something was to stay mortal, at any freeze.
    """

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.classes: list[type] = []
        self.frozen_by = 0
        self.thawed = False
        self.frozen = False
        self.ever = False


_kept = _Kept()


def keep_mortal(kept: Kept) -> Kept:
    """Leave one object out of the next freeze's immortality; gives it back.

    For the few whose end in a worker matters: a `__del__`, a weak reference with a
    callback, a large buffer to be dropped. Its count is written when a worker reads
    it, which copies its page. What it refers to becomes immortal all the same. In a
    worker there is nothing more to keep, and the call does nothing.

    Of a class, all instances that there are at the freeze stay mortal, and those of
    derived classes; the class itself does not. Works as a decorator.
    """
    if _kept.frozen_by in (0, os.getpid()):
        _kept.ever = True
        if isinstance(kept, type):
            _kept.classes.append(kept)
        else:
            _kept.objects.append(kept)
    return kept


def may_freeze_again() -> bool:
    """Whether a further freeze does no harm: what stayed mortal is not known now."""
    return collector.CAN_FREEZE and not _kept.ever


def release() -> None:
    """There is nothing more to keep: these objects are the application's again."""
    _kept.objects.clear()
    _kept.classes.clear()
    holders.release()
    _kept.frozen_by = os.getpid()


def is_inherited() -> bool:
    """Whether this process was forked from one that had frozen its heap."""
    return _kept.frozen and _kept.frozen_by != os.getpid()


def thaw() -> None:
    """Let the stages see what the application froze itself, a habit of --preload users.

    gc.get_objects() leaves it out: its executors would hang each worker. What an
    earlier freeze of ours took was looked at then, and stays (see `freeze`).
    """
    if collector.CAN_FREEZE and not _kept.frozen_by and gc.get_freeze_count():
        # The collector of 3.12 and 3.13 moves immortal objects there by itself: only
        # what it would leave tells of a freeze.
        ours = _kept.objects
        _kept.thawed |= not any(each is ours for each in gc.get_objects())
        gc.unfreeze()


def _links() -> list[type]:
    """Classes of the standard library whose objects form chains that move on.

    Each node holds the next one, and whoever has passed a node drops it. An immortal
    first node would keep all that ever come after it (itertools.tee: 46 bytes an item).
    """
    tee = getattr(sys.modules.get("itertools"), "_tee_dataobject", None)
    return [] if tee is None else [tee]


def _walk(walk: Walk, held: holders.Held) -> WalkReport:
    given = held.items
    try:
        report = WalkReport(*walk(_kept.objects, held))
    except RAISED as error:
        report = WalkReport(holders.shown(error))
    given.clear()  # whoever holds them is immortal now
    faults = [fault for fault in (report.fault, *held.faults.values()) if fault]
    return replace(report, fault="; ".join(faults))


def _look_at_nothing() -> None:
    """Nobody wants to see the heap before the collector no longer lists it."""


def leave_mortal(look: Callable[[], None] = _look_at_nothing) -> None:
    """There is to be no freeze but the application's own, if it made one."""
    release()
    if _kept.thawed:
        gc.collect()  # what is garbage by now would stay for ever
    with contextlib.suppress(*RAISED):
        look()
    if _kept.thawed:
        gc.freeze()
        _kept.frozen = True


def freeze(
    walk: Walk | None = None, look: Callable[[], None] = _look_at_nothing
) -> FreezeReport:
    """Collect everything, make the rest immortal, move it out of the collector's way.

    `look` is called while the collector still lists all of it. A fault of the walk or
    of the look is in the report: the heap is frozen all the same.
    """
    start = time.monotonic()
    # The application's sources are read first: what they make and drop is collected.
    held = holders.Held([*_links(), *_kept.classes]) if walk else None
    # What was frozen before stays out of the collection: from 3.14 on, that would
    # take immortal objects off the collector's lists, where the walk looks for them.
    collected = gc.collect() or 0  # PyPy gives None
    if not collector.CAN_FREEZE:
        # The collection was worth it: workers inherit what it has compacted.
        leave_mortal(look)
        return FreezeReport(0, collected, time.monotonic() - start)
    gc.unfreeze()
    fault = ""
    try:
        look()
    except RAISED as error:
        fault = holders.shown(error)
    walked = WalkReport()
    if walk and held:
        walked = _walk(walk, held)
    release()
    gc.freeze()
    _kept.frozen = True
    # Else the collector waits, in each worker, until a quarter as many objects as it
    # last left alive are new: over 2,000,000 inherited ones, the cycles of 500,000
    # stayed, 33 MB instead of 11. There is nothing left to do here but to count anew.
    # It also empties the interpreter's lists of free objects, which a worker's first
    # full collection would free into inherited pages: 2.4 MiB after hot code was laid.
    gc.collect()
    seconds = time.monotonic() - start
    return FreezeReport(gc.get_freeze_count(), collected, seconds, walked, fault=fault)
