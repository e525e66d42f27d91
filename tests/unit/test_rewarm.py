"""When a master warms up anew, and whether it was worth it, without a server."""

from __future__ import annotations

import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cowpreload.candidates import Shape
from cowpreload.hosts.rewarming import rewarm
from cowpreload.rewarm import (
    DISTANCE_TURNS,
    JUDGED_TURNS,
    MOST_ATTEMPTS,
    MOST_PAGES,
    SETTLED_TURNS,
    First,
    Learner,
    Sight,
    at_rest,
    first_of,
    gain,
    saving,
)
from cowpreload.settings import Settings
from cowpreload.view import SlotView

MIB = 1 << 20
WORKER = SlotView(
    slot=1, state="ready", generation=1, pid=7, requests=100, private=9 * MIB,
    evictable=0, shared=0, pss=0, rss=0, age=9.0, read_age=1.0, strikes=0,
    grown=8 * MIB,
)  # fmt: skip
WORKERS = (WORKER, replace(WORKER, slot=2, grown=12 * MIB))
WORTH = 16 * MIB


def page(name: str, count: int = 100) -> Shape:
    return Shape(f"/{name}/#/", f"/{name}/7/", "h", count)


PAGES = (page("a"), page("b"))


def sight(turn: float, noted: int, *pages: Shape, views=WORKERS) -> Sight:  # type: ignore[no-untyped-def]
    return Sight(turn, 2, views, noted, pages or PAGES)


def settled(learner: Learner) -> Sight:
    """A sight in which all is known, after the first ones."""
    assert learner.wanted(sight(0, 200)) == []
    return sight(SETTLED_TURNS + 1, 400)


def test_pages_are_warmed_when_no_new_one_comes() -> None:
    learner = Learner(WORTH)
    last = settled(learner)
    assert learner.wanted(last) == list(PAGES)


@pytest.mark.parametrize(
    "changed",
    [
        {"noted": 399},  # too little traffic since the last new page
        {"turn": SETTLED_TURNS - 1},
        {"shapes": (*PAGES, page("new", 4))},  # one that is not rare
        {"workers": 3},  # one is missing
        {"views": (WORKER, replace(WORKER, state="leaving"))},
        {"views": (WORKER, replace(WORKER, grown=7 * MIB))},  # not worth it
        {"shapes": ()},
    ],
)
def test_while_it_does_not_pay_nothing_is_warmed(changed: dict[str, object]) -> None:
    learner = Learner(WORTH)
    last = settled(learner)
    assert learner.wanted(replace(last, **changed)) == []  # type: ignore[arg-type]


def test_pages_that_nothing_could_end_are_not_requested() -> None:
    """A master that hangs in one replaces no worker any more."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    try:
        done = rewarm(SimpleNamespace(), Settings(), PAGES)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert done.pages == ()
    assert "pages=0: the application uses SIGALRM" in done.fact.line()


def test_a_rare_page_is_not_waited_for_and_is_warmed_with_the_others() -> None:
    learner = Learner(WORTH)
    last = settled(learner)
    rare = page("rare", 1)
    assert learner.wanted(replace(last, shapes=(*PAGES, rare))) == [*PAGES, rare]
    learner.attempted(last.turn, PAGES)
    later = replace(last, turn=last.turn + DISTANCE_TURNS, shapes=(*PAGES, rare))
    assert learner.wanted(later) == []  # it alone is not worth one


def test_what_was_warm_at_the_start_is_no_reason() -> None:
    learner = Learner(WORTH, {"/a/#/"})
    last = settled(learner)
    assert learner.wanted(last) == [PAGES[1]]
    assert learner.wanted(replace(last, shapes=PAGES[:1])) == []


def test_what_failed_is_tried_once_more() -> None:
    """A busy machine lets no page answer in time; a page that hangs, hangs again."""
    learner = Learner(WORTH)
    last = settled(learner)
    learner.attempted(last.turn, PAGES[:1], PAGES[1:])
    again = replace(last, turn=last.turn + DISTANCE_TURNS)
    assert learner.wanted(again) == [PAGES[1]]
    learner.attempted(again.turn, (), PAGES[1:])
    assert learner.wanted(replace(last, turn=1e6)) == []


def test_what_was_tried_is_not_tried_again_and_attempts_become_rarer() -> None:
    learner = Learner(WORTH)
    last = settled(learner)
    learner.attempted(last.turn, PAGES)
    assert learner.wanted(replace(last, turn=1e6, noted=10**6)) == []
    turns, noted = last.turn, 400
    for attempt in range(1, MOST_ATTEMPTS):
        new = page(f"new{attempt}", 10**6)
        noted *= 3
        assert learner.wanted(sight(turns + 1, noted, *PAGES, new)) == []
        noted *= 3
        distance = DISTANCE_TURNS * 5 ** (attempt - 1)
        assert learner.wanted(sight(turns + distance - 1, noted, *PAGES, new)) == []
        turns += distance
        assert learner.wanted(sight(turns, noted, *PAGES, new)) == [new]
        learner.attempted(turns, [new])
    assert not learner.may_pay(1e9, WORKERS, 2)


def test_no_more_pages_are_warmed_at_once_than_a_master_has_time_for() -> None:
    learner = Learner(WORTH)
    many = tuple(page(f"page{number}") for number in range(2 * MOST_PAGES))
    learner.wanted(sight(0, 200, *many))
    found = learner.wanted(sight(SETTLED_TURNS + 1, 400, *many))
    assert found == list(many[:MOST_PAGES])


def test_the_saving_is_what_ready_workers_grew_by() -> None:
    booting = replace(WORKER, slot=3, state="booting")
    assert saving((*WORKERS, booting)) == 20 * MIB
    assert not at_rest((*WORKERS, booting), 3)
    assert at_rest(WORKERS, 2)
    assert first_of(WORKERS) == First(2, 1, 100, 12 * MIB)


FIRST = First(1, 1, 1000, 12 * MIB)
NEW = replace(WORKER, generation=2, requests=60, grown=8 * MIB)


@pytest.mark.parametrize(
    ("changed", "turns", "verdict"),
    [
        ({}, 5, True),
        ({"grown": 10 * MIB}, 5, False),
        ({"requests": 49}, 5, None),
        ({"requests": 49}, JUDGED_TURNS, True),
        ({"requests": 1}, JUDGED_TURNS, None),  # not each page's share yet
        ({"generation": 1}, JUDGED_TURNS, None),  # still the old one
        ({"state": "booting"}, JUDGED_TURNS, None),
        ({"state": "leaving"}, JUDGED_TURNS, None),
    ],
)
def test_the_first_replaced_worker_is_judged_by_what_it_grew(
    changed: dict[str, object], turns: float, verdict: bool | None
) -> None:
    assert gain(FIRST, replace(NEW, **changed), turns, 4) is verdict  # type: ignore[arg-type]
