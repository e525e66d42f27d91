"""What `top` adds to a table: events between two readings, bars, minutes. Pure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.views import MIB, server, slot, told

from cowpreload.report.live import Rate, bar, events, scale, spark
from cowpreload.view import Frozen, ServerView

ONE = server(slot(1), slot(2))


def again(*slots: object) -> ServerView:
    return server(*slots)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (ONE, ""),
        (
            again(slot(1), slot(2, generation=2, last=told())),
            "worker 2, now generation 2: the last recycled by max-private, "
            "private 61.0",
        ),
        (
            again(slot(1), slot(2, generation=2)),
            "worker 2, now generation 2: the last has ended",
        ),
        (
            again(slot(1), slot(2, 61.0)),
            "worker 2 is over max-private: private 61.0, limit 60.0, strikes 0 of 3",
        ),
        (
            again(slot(1), slot(2, state="leaving", last=told("max-growth"))),
            "worker 2 leaves because of max-growth: it had private 61.0, limit 60.0",
        ),
        (again(slot(1), slot(2, state="leaving")), "worker 2 leaves"),
        (again(slot(1)), "worker 2 has gone, with private 1.5"),
        (again(slot(1), slot(2), slot(3)), "worker 3 is new, generation 1"),
        (
            server(slot(1), slot(2), frozen=Frozen(2, 86 * MIB, 1, 1, 0.8, 1.0)),
            "has warmed up anew, 1 pages, in 0.8 s: 86 MiB inherited",
        ),
    ],
)
def test_what_happens_between_two_readings_is_told_once(
    after: ServerView, line: str
) -> None:
    assert events([ONE], [after]) == ([line] if line else [])
    assert events([after], [after]) == []


def test_of_two_servers_each_line_says_whose() -> None:
    other = server(slot(1), pid=8000)
    assert events([ONE], [ONE, other]) == [
        "master 8000 has started: gunicorn 27.0.1 shop.wsgi"
    ]
    gone = replace(other, slots=())
    assert events([ONE, other], [ONE, gone]) == [
        "master 8000 worker 1 has gone, with private 1.5"
    ]
    assert events([ONE, other], [ONE]) == ["master 8000 has ended"]


def test_a_bar_shows_private_then_shared_and_where_the_limits_are() -> None:
    half = slot(private=50.0, shared=50 * MIB, max_private=80 * MIB, max_private_hard=0)
    assert scale([half]) == 100 * MIB
    assert bar(half, 100 * MIB, 10) == "█████░░░│░"
    over = replace(half, private=90 * MIB, shared=0)
    assert bar(over, 100 * MIB, 10) == "████████│ "
    tiny = replace(half, private=1)
    assert bar(tiny, 100 * MIB, 10)[0] == "█"


def test_a_limit_far_away_does_not_squeeze_the_bars() -> None:
    far = slot(private=50.0, shared=50 * MIB, max_private=0, max_private_hard=900 * MIB)
    assert scale([far]) == 100 * MIB
    assert "│" not in bar(far, scale([far]), 10)
    assert scale([]) == 1


@pytest.mark.parametrize(
    ("values", "width", "shown"),
    [
        ([], 5, ""),
        ([100, 101, 100], 5, "▇█▇"),
        ([0, 50, 100], 5, "▁▄█"),
        ([0, 100, 0, 0, 0], 3, "▁█▁"),
    ],
)
def test_minutes_as_a_line(values: list[int], width: int, shown: str) -> None:
    assert spark(values, width) == shown


def test_requests_a_second_need_two_readings() -> None:
    first, second = Rate(100, 10.0), Rate(130, 12.0)
    assert (first.since(None), second.since(first), first.since(second)) == (0, 15, 0)
