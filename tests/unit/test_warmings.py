"""The record of what was warmed: on the board, and as `cowpreload status` shows it."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from cowpreload import warmings
from cowpreload._core import lib
from cowpreload.board import Board
from cowpreload.report.warmed import warmed_lines
from cowpreload.warmed import SOURCES, Warming, by_source

MIB = 1 << 20
START = Warming(by_source(["route", "list", "route"]), 6, 1.9, 11 * MIB)
AGAIN = Warming(by_source(["traffic"] * 4), 0, 0.812, 2 * MIB, 246 * MIB)


@pytest.fixture
def board() -> Board:
    """One that no other test finds in this process."""
    made = Board.create()
    os.close(made.fd)
    return made


def kept(board: Board) -> list[Warming]:
    return [replace(each, age=0.0) for each in warmings.read(board)]


def test_what_the_master_notes_is_what_a_report_reads(board: Board) -> None:
    assert kept(board) == []
    assert warmings.add(board, START) == 0
    number = warmings.add(board, AGAIN)
    assert kept(board) == [START, AGAIN]
    warmings.judge(board, number, confirmed=True, before=27 * MIB, after=4 * MIB)
    judged = {"grown_before": 27 * MIB, "grown_after": 4 * MIB, "verdict": "confirmed"}
    assert kept(board)[1] == replace(AGAIN, **judged)  # type: ignore[arg-type]


def test_a_server_without_a_warm_up_keeps_the_starts_place(board: Board) -> None:
    warmings.add(board, Warming())
    warmings.add(board, AGAIN)
    assert kept(board) == [Warming(), AGAIN]


def test_of_many_the_start_and_the_last_are_kept(board: Board) -> None:
    warmings.add(board, START)
    later = [replace(AGAIN, grew=number) for number in range(20)]
    for each in later:
        warmings.judge(board, warmings.add(board, each), False, 0, 0)
    assert [each.grew for each in kept(board)] == [
        START.grew,
        *range(21 - lib.COW_WARMINGS, 20),
    ]


def test_every_source_of_a_candidate_has_its_place() -> None:
    assert len(SOURCES) == lib.COW_SOURCES
    assert by_source(reversed(SOURCES)) == tuple((each, 1) for each in SOURCES)
    lines = warmed_lines([Warming(by_source(SOURCES))], 0)
    assert "1 listed, 1 of routes, 1 of the file, 1 of traffic" in lines


def test_the_parts_of_a_start_are_summed_up() -> None:
    other = Warming(by_source(["list"]), 2, 0.1, MIB)
    total = START.plus(other)
    assert total.pages == (("list", 2), ("route", 2))
    assert (total.requests, total.seconds, total.grew) == (8, 2.0, 12 * MIB)


def test_what_is_measured_is_time_and_growth() -> None:
    measuring = warmings.Measuring()
    time.sleep(0.01)
    held = bytearray(b"x") * (8 * MIB)
    made = measuring.of(["list"], 2)
    assert made.seconds >= 0.01
    assert made.grew >= len(held) - MIB
    assert made.pages == (("list", 1),)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [("", ""), ("confirmed", "by 27 MiB before: confirmed; ")],
)
def test_status_says_what_was_warmed_and_what_it_brought(
    verdict: str, said: str
) -> None:
    grown = {"grown_before": 27 * MIB, "grown_after": 4 * MIB}
    again = replace(AGAIN, verdict=verdict, age=124.2, **grown)  # type: ignore[arg-type]
    text = warmed_lines([START, again], 236 * MIB)
    assert max(map(len, text.splitlines())) <= 80
    flat = text.replace("\n  ", " ").splitlines()
    assert flat[0] == (
        "warmed at the start: 1 listed, 2 of routes; 6 requests in 1.9 s; the master "
        "grew by 11 MiB"
    )
    assert flat[1].startswith("warmed anew 124 s ago: 4 of traffic in 0.8 s; the ")
    assert flat[1].endswith(f"{said}total PSS 246 MiB before, 236 MiB now")
    assert warmed_lines([Warming()], 0).endswith("cow-warmup = auto finds some")
    assert warmed_lines([], 0) == ""
