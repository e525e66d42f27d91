"""Which child has which slot, as Celery's master keeps it."""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip("celery")

from cowpreload.board import Board
from cowpreload.hosts.celery_master import Master
from cowpreload.settings import Settings


def ended() -> int:
    """The pid of a process that has ended and was waited for."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def test_a_child_keeps_the_slot_that_an_ended_one_had_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """billiard waits for several at once and replaces one after the other: the second
    is in its list still when the first one's successor is given the second's slot.
    Freed in the name of the second, the successor ran on without limits."""
    master = Master(Settings(), children=2)
    board = Board.create("celery")
    monkeypatch.setattr(master, "_board", board)
    first = ended()
    slot = master.reserve()
    board.raw.slot[slot - 1].life.pid = first  # as the child itself writes it
    master.forked(first, slot)

    successor = 4_000_000  # no such process: what it is does not matter here
    assert master.reserve() == slot
    master.forked(successor, slot)
    master.free_gone({successor})
    assert board.view(slot).state != "free"
    master.free_gone(set())
    assert board.view(slot).state == "free"
