"""From a board and /proc to a view: a board of this process's own, its worker too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cowpreload import freezes, servers
from cowpreload._core import ffi, lib
from cowpreload.board import Board
from cowpreload.slots import ever_served
from cowpreload.view import ServerView

MIB = 1 << 20


@pytest.fixture
def board() -> Board:
    """Of a server whose master is this process; no other test finds it."""
    made = Board.create("gunicorn 27.0.1")
    os.close(made.fd)
    return made


def worker(board: Board, slot: int, pid: int) -> None:
    lib.cow_slot_boot(board.raw, slot, pid)
    life = board.raw.slot[slot - 1].life
    life.requests, life.state = 40, lib.COW_READY
    life.ready_at_ms = lib.cow_now_ms()


def test_what_can_be_read_is_read_now(board: Board) -> None:
    worker(board, 1, os.getpid())
    row = board.raw.slot[0]
    row.judged.ready_private, row.judged.max_growth = MIB, 9999 * MIB
    row.memory.private_bytes, row.memory.read_at_ms = 7, lib.cow_now_ms() - 20_000
    (slot,) = servers.look(board).slots
    assert slot.private > MIB
    assert (slot.read_age, slot.pss > 0) == (0.0, True)
    assert slot.grown == slot.private - MIB
    assert slot.max_growth == 9999 * MIB
    (posted,) = servers.look(board, older_than=3600.0).slots
    assert (posted.private, posted.read_age >= 20) == (7, True)


def test_the_master_is_read_and_says_what_it_has_frozen(board: Board) -> None:
    assert servers.look(board).master.frozen is None
    freezes.add(board, 300, 500, 0.25, 90 * MIB)
    freezes.add(board, 310, 520, 0.5, 95 * MIB)
    view = servers.look(board)
    master = view.master
    assert (master.pid, master.host) == (os.getpid(), "gunicorn 27.0.1")
    assert master.pss > 0
    assert master.age < 600
    assert master.frozen is not None
    frozen = master.frozen
    assert (frozen.generation, frozen.inherited) == (2, 95 * MIB)
    assert (frozen.objects, frozen.immortal, frozen.seconds) == (310, 520, 0.5)
    assert view.totals.memory > 0
    assert view.totals.pss == master.pss


def test_a_master_that_cannot_be_seen_is_not_this_process(board: Board) -> None:
    """Pid 0 is /proc/self to a reading: `status` said its own memory was a server's."""
    board.raw.master_pid = 0
    worker(board, 1, os.getpid())
    view = servers.look(board)
    assert (view.master.pid, view.master.pss, view.master.private) == (0, 0, 0)
    assert not view.totals.is_whole
    assert view.totals.pss == view.slots[0].pss


def test_a_worker_that_is_not_forked_yet_or_gone_takes_nothing(board: Board) -> None:
    lib.cow_slot_boot(board.raw, 1, 0)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    worker(board, 2, gone.pid)
    board.raw.slot[1].memory.pss = 50 * MIB
    view = servers.look(board)
    assert [each.state for each in view.slots] == ["booting", "gone"]
    assert view.slots[0].pss == 0
    assert view.totals.pss == view.master.pss


def counted(view: ServerView) -> dict[str, dict[str, int]]:
    counts = view.counts
    rows = {"recycled": counts.recycled, "killed": counts.killed}
    return {
        name: {why: many for why, many in row if many} for name, row in rows.items()
    }


def test_decisions_are_counted_by_reason_and_requests_outlive_generations(
    board: Board,
) -> None:
    worker(board, 1, os.getpid())
    worker(board, 1, os.getpid())
    worker(board, 2, os.getpid())
    lib.cow_slot_free(board.raw, 2)
    reading = ffi.new("struct cow_reading *", {"private_bytes": 131 * MIB})
    verdict = ffi.new("struct cow_verdict *", {"limit": 128 * MIB})
    for action, reason in (
        (lib.COW_RECYCLE, lib.COW_REASON_PRIVATE),
        (lib.COW_RECYCLE, lib.COW_REASON_RENEWED),
        (lib.COW_ASK_AGAIN, lib.COW_REASON_UNHEEDED),
        (lib.COW_KILL, lib.COW_REASON_HARD),
    ):
        verdict.action, verdict.reason = action, reason
        lib.cow_end_post(board.raw, 1, verdict, reading, 0, lib.cow_now_ms())
    view = servers.look(board)
    assert counted(view) == {
        "recycled": {"max-private": 1, "renewed": 1},
        "killed": {"max-private-hard": 1},
    }
    assert (view.counts.unheeded, view.counts.requests) == (1, 120)
    last = view.slots[0].last
    assert last is not None
    assert (last.action, last.reason) == ("killed", "max-private-hard")
    assert (last.private, last.limit, last.generation) == (131 * MIB, 128 * MIB, 2)


def test_a_boot_takes_no_request_from_the_counter(board: Board) -> None:
    """It clears the slot: a scrape at that moment showed a counter that began anew."""
    slot = board.reserve()
    life = board.raw.slot[slot - 1].life
    pid = os.fork()
    if not pid:
        while True:  # until it is killed
            life.requests = 5
            lib.cow_slot_boot(board.raw, slot, 0)
    try:
        before = 0
        for _ in range(100_000):
            now = ever_served(life)
            assert now >= before
            before = now
        assert before > 0
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
