"""What is said of a server that another setting would serve better."""

from __future__ import annotations

import os

import pytest

from cowpreload.board import Board
from cowpreload.hints import hint
from cowpreload.hosts import turns
from cowpreload.hosts.hint import Hint
from cowpreload.settings import Settings

MIB = 1 << 20
AUTO = Settings(warmup=("auto",))


def test_the_one_line_says_how_many_requests_and_which_settings() -> None:
    assert hint(AUTO, 96 * MIB, noted=300, withheld=1500) == (
        "cow: warmup-private=off: 1500 of 1800 requests carried a login, and nothing "
        "was learned from them; the workers have grown by 96MiB since they were ready: "
        "cow-warmup-private=on with cow-warmup-user (Django), or paths with "
        "cow-warmup-header, would save a part of it"
    )
    line = hint(Settings(warmup=("auto",), warmup_user="u"), 96 * MIB, 300, 1500)
    assert line.endswith("ready: cow-warmup-private=on would save a part of it")


@pytest.mark.parametrize(
    ("grown", "noted", "withheld"),
    [(15 * MIB, 300, 1500), (96 * MIB, 9100, 900), (96 * MIB, 0, 40), (96 * MIB, 0, 0)],
)
def test_what_is_not_worth_a_line_gets_none(
    grown: int, noted: int, withheld: int
) -> None:
    assert hint(AUTO, grown, noted, withheld) == ""


def test_a_server_without_any_warm_up_is_told_of_it() -> None:
    line = hint(Settings(), 96 * MIB)
    assert line.startswith("cow: warmup=unset: the workers have grown by 96MiB ")
    assert hint(Settings(warmup=("/",)), 96 * MIB) == ""


def test_a_server_that_learns_for_its_next_start_alone_is_told_what_that_needs() -> (
    None
):
    """A running master that warms nothing anew has no use for a login's pages, and a
    file without `auto` is no server without a warm up."""
    line = hint(AUTO, 96 * MIB, 300, 1500, warms_anew=False)
    assert "cow-warmup-private=on and cow-warmup-file with cow-warmup-user" in line
    kept = Settings(warmup_file="/var/lib/shop/warm")
    line = hint(kept, 96 * MIB, 300, 1500, warms_anew=False)
    assert line.startswith("cow: warmup-private=off: 1500 of 1800 requests ")
    assert "cow-warmup-private=on with cow-warmup-user (Django)" in line
    assert hint(kept, 96 * MIB) == ""


@pytest.mark.parametrize(
    ("settings", "why_not", "said"),
    [
        (Settings(warmup_file="/var/lib/shop/warm"), "", []),
        (
            Settings(warmup=("/",), warmup_file="/w", warmup_private="on"),
            "",
            ["cow: warmup-private=on: pages behind a login stay cold; "],
        ),
        (
            AUTO,
            "it writes the log",
            ["cow: warmup=auto: nothing is warmed from traffic: it writes the log; "],
        ),
    ],
)
def test_where_the_master_learns_nothing_the_hint_is_not_lost(
    settings: Settings, why_not: str, said: list[str]
) -> None:
    """A file without `auto` was told nothing, nor was a master that writes the log."""
    lines: list[str] = []
    called = turns.begin(
        Board.create(),
        settings,
        (),
        immortal=True,
        uid=os.geteuid(),
        say=lines.append,
        why_not=why_not,
    )
    assert isinstance(called, Hint)
    assert [line[: len(start)] for line, start in zip(lines, said, strict=True)] == said


def test_who_requests_nothing_that_visitors_choose_is_not_told_to_note_more() -> None:
    """A master that is root, of workers that are not."""
    for settings in (AUTO, Settings(warmup_file="/var/lib/shop/warm")):
        called = turns.begin(
            Board.create(),
            settings,
            (),
            immortal=True,
            uid=os.geteuid() + 1,
            say=lambda line: None,
        )
        assert called is None
