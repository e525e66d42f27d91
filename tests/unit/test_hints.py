"""What is said of a server that another setting would serve better."""

from __future__ import annotations

import pytest

from cowpreload.hints import hint
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
