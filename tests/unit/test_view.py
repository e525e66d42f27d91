"""What a view of a server says of its figures: limits passed, totals. Pure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cowpreload.view import End, MasterView, SlotView, total

MIB = 1 << 20
SLOT = SlotView(
    slot=1, state="ready", generation=3, pid=7, requests=100, private=20 * MIB,
    evictable=0, shared=90 * MIB, pss=30 * MIB, rss=110 * MIB, age=60.0, read_age=1.0,
    strikes=0, grown=15 * MIB, ready_age=59.0, served=900, wanted=3,
    ready_private=5 * MIB,
)  # fmt: skip
TOLD = End("recycled", "max-private", 3, 131 * MIB, 128 * MIB, 60.0)
MASTER = MasterView(5, "gunicorn 27.0.1", "shop.wsgi", 100.0, pss=50 * MIB)


@pytest.mark.parametrize(
    ("limits", "over", "soft"),
    [
        ({}, "", 0),
        ({"max_private": 20 * MIB}, "", 20 * MIB),
        ({"max_private": 20 * MIB - 1}, "max-private", 20 * MIB - 1),
        ({"max_growth": 15 * MIB}, "", 20 * MIB),
        ({"max_growth": 14 * MIB}, "max-growth", 19 * MIB),
        ({"max_private": 99 * MIB, "max_growth": 30 * MIB}, "", 35 * MIB),
        (
            {"max_private": 1, "max_private_hard": 19 * MIB},
            "max-private-hard",
            1,
        ),
    ],
)
def test_a_limit_that_is_passed_is_named(
    limits: dict[str, int], over: str, soft: int
) -> None:
    slot = replace(SLOT, **limits)  # type: ignore[arg-type]
    assert (slot.over, slot.soft, slot.is_passing) == (over, soft, bool(over))


def test_no_limit_judges_a_worker_that_is_not_ready() -> None:
    assert replace(SLOT, max_private=1, ready_age=0.0).over == ""


@pytest.mark.parametrize(
    ("state", "last", "leaving_for"),
    [
        ("leaving", TOLD, "max-private"),
        ("leaving", replace(TOLD, reason="unheeded", action="unheeded"), "unheeded"),
        ("leaving", None, ""),  # told by the host
        ("leaving", replace(TOLD, generation=2), ""),  # that was the one before
        ("leaving", replace(TOLD, reason="renewed"), ""),  # by no limit
        ("ready", TOLD, ""),
    ],
)
def test_only_a_worker_that_leaves_because_of_a_limit_is_passing_one(
    state: str, last: End | None, leaving_for: str
) -> None:
    slot = replace(SLOT, state=state, last=last)
    assert (slot.leaving_for, slot.is_passing) == (leaving_for, bool(leaving_for))


def test_totals_leave_out_a_worker_that_is_gone_and_say_what_is_missing() -> None:
    gone = replace(SLOT, slot=2, state="gone")
    totals = total(MASTER, [SLOT, gone], 1 << 30, "/sys/fs/cgroup/memory.max", 5)
    assert (totals.workers, totals.pss, totals.is_whole) == (1, 80 * MIB, True)
    assert totals.memory == 1 << 30
    assert not total(replace(MASTER, pss=0), [SLOT]).is_whole
    assert not total(MASTER, [replace(SLOT, pss=0)]).is_whole
    booting = replace(SLOT, pss=0, pid=0, state="booting")  # the fork comes next
    assert total(MASTER, [SLOT, booting]).is_whole
