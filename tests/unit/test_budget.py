"""The budget's policy, in C, over boards that are made up; no process, no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cowpreload import _core
from cowpreload._core import ffi, lib
from cowpreload.records import Action, History, Limits, Reading

MIB = 1 << 20
LIMITS = Limits(strikes=3, min_lifetime=10, max_recycling=3)
FRESH = 10 * MIB
SHARED = 200 * MIB
NOW = 1_000_000  # ms


def put(
    board: Any,
    slot: int,
    private: int,
    *,
    state: int = lib.COW_READY,
    born: int = 0,
    fresh: int = FRESH,
    evictable: int = 0,
    spared: int = 0,
    read: int = NOW,
) -> None:
    """A worker that has posted a reading."""
    row = board.slot[slot - 1]
    row.life.state, row.life.pid = state, 100 + slot
    row.life.booted_at_ms, row.life.ready_at_ms = born, born + 1
    row.judged.ready_private = fresh
    row.memory.private_bytes, row.memory.evictable_bytes = private, evictable
    row.memory.read_at_ms = read
    row.part.shared_once, row.part.spared_until_ms = SHARED, spared
    board.highest = max(board.highest, slot)


def server(budget: int, *private: int, **more: Any) -> Any:
    """A board of a master of 20 MiB of its own and workers of so many bytes."""
    board = ffi.new("struct cow_board *")
    whole = board.whole
    whole.budget, whole.read_at_ms = budget, NOW
    whole.private_bytes, whole.shared_once = 20 * MIB, SHARED
    for slot, each in enumerate(private, start=1):
        put(board, slot, each, **more)
    return board


def reading(private: int) -> Reading:
    return Reading(private, 0, 0, 0)


def sum_of(board: Any, now: int = NOW) -> Any:
    found = ffi.new("struct cow_sum *")
    lib.cow_budget_sum(board, now, found)
    return found


def test_what_is_shared_counts_once_and_each_ones_own_in_full() -> None:
    found = sum_of(server(512 * MIB, 50 * MIB, 30 * MIB, evictable=MIB))
    assert found.total == found.settled == 200 * MIB + 20 * MIB + 82 * MIB
    assert (found.shared, found.master, found.workers) == (SHARED, 20 * MIB, 2)
    assert found.share == (512 - 220) * MIB // 2


def test_readings_of_before_and_after_one_came_add_up() -> None:
    """The PSS of each is of another number of processes: their sum is of none."""
    board = server(512 * MIB)
    for slot, sharers in ((1, 2), (2, 3), (3, 4)):
        put(board, slot, 10 * MIB)
        share_then = 120 * MIB // sharers
        board.slot[slot - 1].part.shared_once = share_then * sharers
    board.whole.shared_once = 120 * MIB
    assert sum_of(board).total == (120 + 20 + 30) * MIB


def test_a_worker_that_leaves_or_is_forked_counts_as_a_fresh_one_soon() -> None:
    board = server(512 * MIB, 150 * MIB, 150 * MIB)
    put(board, 1, 150 * MIB, state=lib.COW_LEAVING)
    put(board, 3, 0, state=lib.COW_BOOTING, read=0)
    found = sum_of(board)
    assert found.total == (220 + 300 + 10) * MIB
    assert found.settled == (220 + 10 + 150 + 10) * MIB
    assert (found.workers, found.serving) == (3, 1)


def test_a_master_that_was_not_read_counts_as_if_it_shared_nothing() -> None:
    board = server(512 * MIB, 50 * MIB)
    board.whole.read_at_ms = board.whole.shared_once = 0
    assert sum_of(board).total == (2 * 200 + 50) * MIB


def test_the_one_with_the_most_private_memory_goes_the_oldest_of_equals() -> None:
    assert sum_of(server(MIB << 10, 50 * MIB, 90 * MIB, 60 * MIB)).biggest == 2
    board = server(MIB << 10, 50 * MIB)
    put(board, 2, 90 * MIB, born=500)
    put(board, 3, 90 * MIB, born=400)
    put(board, 4, 95 * MIB, state=lib.COW_LEAVING)
    assert sum_of(board).biggest == 3


def test_one_that_is_spared_is_passed_over_until_it_is_not() -> None:
    board = server(MIB << 10, 50 * MIB)
    put(board, 2, 90 * MIB, spared=NOW + 1)
    assert sum_of(board).biggest == 1
    assert sum_of(board, NOW + 1).biggest == 2


def test_one_that_would_give_back_little_stays() -> None:
    """A fresh worker of 10 MiB has as much again after some requests."""
    assert sum_of(server(100 * MIB, 11 * MIB, 11 * MIB)).biggest == 0
    assert sum_of(server(MIB << 10, 11 * MIB, 12 * MIB)).biggest == 2
    large = server(MIB << 12, 450 * MIB, fresh=400 * MIB)
    assert sum_of(large).biggest == 0


def test_nobody_goes_where_fresh_workers_would_not_fit_either() -> None:
    board = server(245 * MIB, 50 * MIB, 90 * MIB, 60 * MIB)
    found = sum_of(board)
    assert (found.fits, found.biggest, found.fresh) == (2, 0, FRESH)
    board.whole.budget = 250 * MIB
    assert (sum_of(board).fits, sum_of(board).biggest) == (3, 2)


@dataclass
class Worker:
    """What a watching thread does about the budget, without its thread."""

    board: Any
    slot: int
    limits: Any
    pid: int = 0
    left_at: int = 0

    def __post_init__(self) -> None:
        self.over = ffi.new("struct cow_over *")
        self.history = ffi.new("struct cow_history *")

    def begin(self, now: int, private: int = FRESH) -> None:
        """A fresh process, ready at once."""
        early = self.history.early
        self.pid += 1000
        lib.cow_slot_boot(self.board, self.slot, self.pid + self.slot)
        put(self.board, self.slot, private, born=now, read=now)
        self.board.slot[self.slot - 1].life.pid = self.pid + self.slot
        self.over = ffi.new("struct cow_over *")
        self.history = ffi.new("struct cow_history *")
        self.history.ready_at_ms, self.history.early = now, early
        self.history.ready_private = private
        spared = lib.cow_spared_ms(self.limits, self.history)
        self.board.slot[self.slot - 1].part.spared_until_ms = now + spared
        lib.cow_ticket_release(self.board, self.slot)

    @property
    def row(self) -> Any:
        return self.board.slot[self.slot - 1]

    @property
    def leaves(self) -> bool:
        return bool(self.row.life.state == lib.COW_LEAVING)

    def turn(self, now: int, grown: int) -> bool:
        """Grow, look, read what is called for; whether it is told to go."""
        if self.leaves:
            return False
        found, need = sum_of(self.board, now), ffi.new("struct cow_need *")
        lib.cow_budget_count(self.limits, found, now, self.over)
        lib.cow_budget_need(found, self.over, self.slot, now, need)
        memory = self.row.memory
        unread = grown - memory.private_bytes
        if memory.read_at_ms >= need.since_ms and unread <= need.unread:
            return False
        memory.private_bytes, memory.read_at_ms = grown, now
        verdict = ffi.new("struct cow_verdict *")
        found = sum_of(self.board, now)
        lib.cow_budget_count(self.limits, found, now, self.over)
        lib.cow_budget_judge(
            self.limits, self.history, found, self.over, self.slot, verdict
        )
        if verdict.action != lib.COW_RECYCLE:
            return False
        assert verdict.reason == lib.COW_REASON_BUDGET
        one = ffi.new("struct cow_limits *", {"max_recycling": 1})
        pid = self.row.life.pid
        if not lib.cow_ticket_take(self.board, self.slot, pid, one, now):
            return False
        self.row.life.state, self.left_at = lib.COW_LEAVING, now
        self.history.early = verdict.early
        return True


def test_strikes_are_looks_an_interval_apart() -> None:
    """A thread that peeks each 5 ms would have its three at once."""
    board = server(300 * MIB, 150 * MIB)
    over, limits = ffi.new("struct cow_over *"), _core.limits_struct(LIMITS)
    for now in range(NOW, NOW + 999, 5):
        lib.cow_budget_count(limits, sum_of(board), now, over)
    assert (over.strikes, over.since_ms) == (1, NOW)
    lib.cow_budget_count(limits, sum_of(board), NOW + 1000, over)
    assert over.strikes == 2
    board.whole.budget = 400 * MIB
    lib.cow_budget_count(limits, sum_of(board), NOW + 2000, over)
    assert over.strikes == 0


@settings(deadline=None, max_examples=40)
@given(
    speed=st.lists(st.integers(0, 8), min_size=2, max_size=32),
    slow=st.integers(1, 9),
)
def test_a_fleet_leaves_one_by_one_and_comes_below_again(
    speed: list[int], slow: int
) -> None:
    """Workers that leak, each at its speed in MiB a second, for four minutes; they take
    `slow` seconds to leave, less than a ticket is kept for."""
    count = len(speed)
    base = SHARED + 20 * MIB
    budget = base + count * 60 * MIB
    board = server(budget)
    limits = _core.limits_struct(LIMITS)
    workers = [Worker(board, slot + 1, limits) for slot in range(count)]
    size = [FRESH] * count
    for each in workers:
        each.begin(NOW)
    recycled = over = longest = 0
    for second in range(1, 240):
        now = NOW + 1000 * second
        for at, worker in enumerate(workers):
            size[at] += 0 if worker.leaves else speed[at] * MIB
            if worker.leaves and now - worker.left_at >= 1000 * slow:
                size[at] = FRESH
                worker.begin(now)
            recycled += worker.turn(now + at, size[at])
        assert sum(each.leaves for each in workers) <= 1
        found = sum_of(board, now + count)
        # What nobody has read is a part of what the budget has left.
        unread = max(budget - found.settled, budget // 64) + sum(speed) * MIB
        assert sum(size) + base <= found.total + unread
        over = over + 1 if found.settled > budget else 0
        longest = max(longest, over)
    if sum(speed) * 200 > count * 50:
        assert recycled
    # One that leaks alone gives back all that is too much.
    if sum(map(bool, speed)) == 1:
        assert longest <= LIMITS.strikes + 2


def test_32_workers_that_leak_equally_never_leave_together() -> None:
    """However large cow-max-recycling is: what one gives back is to be seen first."""
    board = server(SHARED + 20 * MIB + 32 * 60 * MIB)
    limits = _core.limits_struct(LIMITS)
    workers = [Worker(board, slot + 1, limits) for slot in range(32)]
    size, gone, most = [FRESH] * 32, [], 0
    for each in workers:
        each.begin(NOW)
    for second in range(1, 400):
        now = NOW + 1000 * second
        for at, worker in enumerate(workers):
            size[at] += MIB // 2
            if worker.leaves and now - worker.left_at >= 2000:
                size[at] = FRESH
                worker.begin(now)
            if worker.turn(now + at, size[at]):
                gone.append(second)
        assert sum(each.leaves for each in workers) <= 1
        most = max(most, sum(size))
    # 16 MiB a second come; the oldest of many ages has about 100 more than a fresh one.
    assert 40 <= len(gone) <= 70
    assert most <= 32 * 60 * MIB + 2 * 100 * MIB


@pytest.mark.parametrize("most", [1, 3])
def test_32_workers_over_a_soft_limit_at_once_leave_by_cow_max_recycling(
    most: int,
) -> None:
    """The same leak in each, without jitter: all have their strikes in one second."""
    limits = Limits(max_private=60 * MIB, strikes=3, max_recycling=most)
    raw, board = _core.limits_struct(limits), server(0)
    size, history = [FRESH] * 32, [History(ready_at=NOW / 1000)] * 32
    pids, leaving = list(range(100, 132)), {}
    for slot in range(1, 33):
        put(board, slot, FRESH)
        board.slot[slot - 1].life.pid = pids[slot - 1]
    recycled = 0
    for second in range(1, 400):
        now = NOW + 1000 * second
        for at in range(32):
            row, size[at] = board.slot[at], size[at] + MIB // 2
            if now - leaving.get(at, now) >= 2000:
                del leaving[at]
                size[at], pids[at] = FRESH, pids[at] + 1000
                history[at] = History(ready_at=now / 1000)
                lib.cow_slot_boot(board, at + 1, pids[at])
                row.life.state = lib.COW_READY
                lib.cow_ticket_release(board, at + 1)
            if at in leaving:
                continue
            found = _core.judge(limits, history[at], reading(size[at]), now / 1000)
            history[at] = replace(
                history[at], strikes=found.strikes, over_since=found.over_since
            )
            if found.action is Action.RECYCLE and lib.cow_ticket_take(
                board, at + 1, pids[at], raw, now
            ):
                row.life.state = lib.COW_LEAVING
                leaving[at], recycled = now, recycled + 1
        assert len(leaving) <= most
    assert recycled >= 32 * most
