"""A board with bytes that nobody of ours wrote: what master and readers make of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from cowpreload import about, freezes, served, warmings
from cowpreload._core import ffi, lib
from cowpreload.board import Board
from cowpreload.hosts.telling import Workers

MOST = (1 << 64) - 1


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board.create("a host")
    yield made
    made.close()


def overwrite(board: Board, made: bytes) -> None:
    ffi.buffer(board.raw, ffi.sizeof("struct cow_board"))[:] = made


def post(board: Board, slot: int) -> None:
    """A worker of `slot` was told to go."""
    verdict = {"action": lib.COW_RECYCLE, "reason": lib.COW_REASON_PRIVATE}
    lib.cow_end_post(
        board.raw,
        slot,
        ffi.new("struct cow_verdict *", verdict),
        ffi.new("struct cow_reading *"),
        0,
        lib.cow_now_ms(),
    )


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_have_every_reader_give_something(board: Board, seed: int) -> None:
    overwrite(board, random.Random(seed).randbytes(ffi.sizeof("struct cow_board")))
    said: list[str] = []
    workers = Workers(said.append, said.append, said.append)
    workers.look_at_all(board)
    assert said == []
    assert list(board) == []
    assert not any(board.raw.tickets)
    about.read(board), freezes.read(board), served.read(board), warmings.read(board)


@pytest.mark.parametrize("byte", [b"\0", b"\xff"])
def test_the_master_puts_back_what_a_board_is_known_by(
    board: Board, byte: bytes
) -> None:
    """It was hidden from every report until the server was started anew."""
    whole = ffi.buffer(board.raw, ffi.sizeof("struct cow_board"))
    before = whole[: ffi.offsetof("struct cow_board", "started")]
    overwrite(board, byte * len(whole))
    board.restore()
    assert whole[: len(before)] == before
    assert board.raw.highest == 0


@pytest.mark.parametrize("highest", [0, 3, (1 << 32) - 1])
def test_a_row_that_its_worker_has_not_put_back_yet_hides_no_slot(
    board: Board, highest: int
) -> None:
    """A threaded worker was left out of all reports until it was recycled."""
    slots = [board.reserve() for _ in range(4)]
    board.raw.slot[3].life.state = 4711
    board.raw.highest = highest
    board.restore()
    assert slots == list(board.slots()) == [1, 2, 3, 4]


def test_a_forged_right_to_leave_gives_no_worker_a_slot_far_away(
    board: Board,
) -> None:
    forged_in_the_future = ((1 << 31) - 1) << 33
    board.raw.tickets[0] = forged_in_the_future | 4711 << 11 | 862
    assert board.reserve() == 1


def test_a_count_of_slots_that_cannot_be_has_the_master_look_at_no_more(
    board: Board,
) -> None:
    """At four thousand million, one turn of uWSGI's took minutes."""
    board.raw.highest = board.raw.slots = (1 << 32) - 1
    assert len(board.slots()) == lib.COW_SLOTS


@pytest.mark.parametrize(("sequence", "logged"), [(7, MOST), (MOST, 3), (0, MOST)])
def test_decisions_are_said_again_after_their_count_was_overwritten(
    board: Board, sequence: int, logged: int
) -> None:
    """One that was logged before it was made was waited for for ever."""
    raw: Any = board.raw.end[0]
    raw.sequence, raw.logged, raw.action = sequence, logged, 4711
    assert board.take_end(1) is None
    post(board, 1)
    told = board.take_end(1)
    assert told is not None
    assert (told.action, told.missed) == ("recycled", 0)
    assert board.take_end(1) is None


def test_a_back_off_that_nobody_counted_spares_no_worker(board: Board) -> None:
    """It would have been spared for an hour, and the next one too."""
    raw = board.raw.slot[0]
    for counted, kept in [(3, 3), (4_000_000_000, 0)]:
        raw.judged.early = counted
        lib.cow_slot_boot(board.raw, 1, 1)
        assert raw.judged.early == kept
