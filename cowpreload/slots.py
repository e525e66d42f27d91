"""From the structs of a mapped board to the views that all readers share. No policy.

Takes a board as the native core has it; gives copies. Readers may see fields of two
readings mixed.
"""

from __future__ import annotations

from typing import Any

from cowpreload import _core
from cowpreload._core import lib
from cowpreload.lifecycle import NewWorker, Recycling
from cowpreload.view import REASONS, End, SlotView

# What a log line calls an action.
_DONE = {
    lib.COW_KEEP: "kept",
    lib.COW_RECYCLE: "recycled",
    lib.COW_KILL: "killed",
    lib.COW_ASK_AGAIN: "unheeded",
}
_TOLD = _DONE.keys() - {lib.COW_KEEP}
_MOST_MISSED = 1 << 20  # between two turns; more were not counted but written
_TRIES = 1000  # below a millisecond; a boot clears for less than a microsecond
STATES = {
    lib.COW_FREE: "free",
    lib.COW_BOOTING: "booting",
    lib.COW_READY: "ready",
    lib.COW_LEAVING: "leaving",
}


def ever_served(life: Any) -> int:
    """Requests of all the slot's workers; never less than it gave before.

    A worker's boot clears the slot (cow_slot_boot): a sum that was read meanwhile
    would be taken for a counter that began anew.
    """
    for _ in range(_TRIES):
        generation = life.generation
        found = int(life.served + life.requests)
        if generation and generation == life.generation:
            return found
    return int(life.served + life.requests)  # a process died while it booted


def slot_view(board: Any, slot: int) -> SlotView:
    """Copy one slot (1 ..) out of a mapped board."""
    raw = board.slot[slot - 1]
    life, memory = raw.life, raw.memory
    at = lib.cow_now_ms()
    return SlotView(
        slot=slot,
        state=STATES.get(life.state, "unknown"),
        generation=life.generation,
        pid=life.pid,
        requests=life.requests,
        private=memory.private_bytes,
        evictable=memory.evictable_bytes,
        shared=memory.shared_bytes,
        pss=memory.pss,
        rss=memory.rss,
        age=max(0, at - life.booted_at_ms) / 1000,
        read_age=max(0, at - memory.read_at_ms) / 1000 if memory.read_at_ms else 0.0,
        strikes=raw.judged.strikes,
        grown=max(0, memory.private_bytes - raw.judged.ready_private),
        ready_age=max(1, at - life.ready_at_ms) / 1000 if life.ready_at_ms else 0.0,
        served=ever_served(life),
        wanted=raw.judged.wanted,
        ready_private=raw.judged.ready_private,
        max_private=raw.judged.max_private,
        max_growth=raw.judged.max_growth,
        max_private_hard=raw.judged.max_private_hard,
        last=_end(board.end[slot - 1]),
    )


def _end(raw: Any) -> End | None:
    """The last decision about a slot; None: there was none."""
    if not raw.sequence:
        return None
    return End(
        action=_DONE.get(raw.action, "unknown"),
        reason=_core.REASONS.get(raw.reason, "unknown"),
        generation=raw.generation,
        private=raw.private_bytes,
        limit=raw.limit,
        age=raw.age_ms / 1000,
        total=int(raw.total),
    )


def take_end(board: Any, slot: int) -> Recycling | None:
    """The last decision about a slot's worker, once; written to: the master's alone."""
    raw = board.end[slot - 1]
    sequence, logged = int(raw.sequence), int(raw.logged)
    if sequence == logged:
        return None
    raw.logged = sequence
    if raw.action not in _TOLD or raw.reason not in _core.REASONS:
        return None  # a stray write of the application's
    missed = sequence - logged - 1
    return Recycling(
        worker=slot,
        generation=int(raw.generation),
        pid=int(raw.pid),
        action=_DONE.get(raw.action, "unknown"),
        reason=_core.REASONS.get(raw.reason, "unknown"),
        private=int(raw.private_bytes),
        limit=int(raw.limit),
        age=raw.age_ms / 1000,
        leaving=raw.leaving_ms / 1000,
        missed=missed if 0 <= missed < _MOST_MISSED else 0,
        total=int(raw.total),
    )


def ready_worker(board: Any, slot: int) -> NewWorker | None:
    """The worker of a slot that could serve at some time; None: it cannot yet."""
    raw = board.slot[slot - 1]
    life = raw.life
    if not life.ready_at_ms or not life.pid or life.state not in STATES:
        return None
    return NewWorker(
        worker=slot,
        generation=int(life.generation),
        pid=int(life.pid),
        private=int(raw.judged.ready_private),
        shared=int(raw.memory.shared_bytes),
        boot=max(0, life.ready_at_ms - life.booted_at_ms) / 1000,
    )


def by_reason(counts: Any) -> tuple[tuple[str, int], ...]:
    """A row of the board's decisions, in the order of REASONS."""
    found = {_core.REASONS[reason]: int(counts[reason]) for reason in _core.REASONS}
    return tuple((reason, found[reason]) for reason in REASONS)


def slot_faults(name: str, workers: int) -> list[str]:
    """The fault of a host's setting `name` that asks for more workers than slots."""
    if workers <= _core.SLOTS:
        return []
    return [
        f"{name}={workers}: the board has {_core.SLOTS} slots; "
        "start fewer workers or a second server"
    ]
