"""`cowpreload status`: the table whole, what is marked, the JSON as documented."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.views import MIB, server, slot, told

from cowpreload.cli import main
from cowpreload.report.status import WIDTH, status_text
from cowpreload.report.status_json import status_json

PAGE = Path(__file__).parent.parent.parent / "docs" / "status.md"
OVER = slot(2, 60.5, generation=4, strikes=2, last=told(generation=3))
BUSY = server(slot(1), OVER, recycled=3)


def test_the_table_is_what_the_page_shows() -> None:
    shown = (
        PAGE.read_text().partition("    $ cowpreload status\n")[2].partition("\n\n")[0]
    )
    assert status_text(BUSY) == textwrap.dedent(shown)


@pytest.mark.parametrize("width", range(50, WIDTH + 1))
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    lines = status_text(BUSY, width).splitlines()
    assert max(map(len, lines)) <= width
    table = next(line for line in lines if line.startswith("slot")).split()
    assert {"slot", "pid", "private", "limit", "pss"} <= set(table)


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ((0, 0, 0), "-"),
        ((60 * MIB, 0, 0), "60"),
        ((0, 64 * MIB + MIB // 2, 0), "65.5"),
        ((0, 0, 2048 * MIB), "-/2048"),
        ((200 * MIB, 20 * MIB, 300 * MIB), "21/300"),
    ],
)
def test_limits_are_private_sizes_soft_and_hard(
    limits: tuple[int, int, int], shown: str
) -> None:
    private, growth, hard = limits
    row = slot(max_private=private, max_growth=growth, max_private_hard=hard)
    assert f" {shown} " in status_text(server(row)).splitlines()[-1]


def test_a_worker_that_leaves_because_of_a_limit_is_told_with_what_it_had() -> None:
    leaving = slot(state="leaving", last=told("max-growth"))
    text = status_text(server(leaving))
    assert text.endswith(
        "worker 1 leaves because of max-growth: it had private 61.0, limit 60.0"
    )
    assert "1.5! " in text


def test_what_cannot_be_read_is_said() -> None:
    text = status_text(server(slot(), pid=0, pss=0, frozen=None, host=""))
    assert text.startswith("master 0: shop.wsgi, 1 worker, ")
    assert "total PSS at least 16.5 of 512" in text
    assert "the master cannot be read" in text
    assert "frozen" not in text


def typed(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Each field of a JSON value, and its type."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from typed(each, f"{path}.{key}" if path else key)
        if path:
            yield path, "object"
    elif isinstance(value, list):
        for each in value:
            yield from typed(each, f"{path}[]")
        yield path, "array"
    else:
        yield (
            path,
            {int: "integer", float: "number", str: "string", bool: "boolean"}[
                type(value)
            ]
            if value is not None
            else "null",
        )


def documented() -> dict[str, set[str]]:
    """The table of docs/status.md: the types of each field."""
    rows = re.findall(r"^\| `([^`]+)` \| ([a-z, ]+) \|", PAGE.read_text(), re.MULTILINE)
    return {path: set(types.split(" or ")) for path, types in rows}


def check(text: str) -> set[str]:
    """The fields of a JSON text, each of which must be as the page says."""
    known, found = documented(), set()
    for path, kind in typed(json.loads(text), ""):
        # What is counted by reason, or by source, is listed once.
        name = re.sub(r"(recycled|killed|pages)\.[a-z-]+$", r"\1.*", path)
        if not name.endswith("[]"):
            assert kind in known.get(name, set()), (name, kind)
            found.add(name)
    return found


def test_a_budget_is_shown_with_what_it_leaves_each_worker() -> None:
    view = server(slot())
    figures = {"budget": 400 * MIB, "counted": 109 * MIB, "share": 41 * MIB}
    below = replace(view, totals=replace(view.totals, **figures))
    text = " ".join(status_text(below, WIDTH).split())
    assert "of the control group), budget 400;" in text
    assert (
        "counted 109.0 of the budget 400, which leaves each worker private 41" in text
    )
    assert "is over it" not in text
    over = replace(below, totals=replace(below.totals, counted=401 * MIB))
    text = " ".join(status_text(over, WIDTH).split())
    assert "budget 400 !;" in text
    assert "the server is over it" in text
    assert "budget" not in status_text(view, WIDTH)


def test_a_worker_that_leaves_for_the_budget_says_what_the_server_took() -> None:
    last = replace(told("budget"), limit=400 * MIB, total=409 * MIB)
    text = status_text(server(slot(state="leaving", last=last)), WIDTH)
    assert "leaves because of budget: it had private 61.0, the server 409.0 of" in text


def test_the_json_is_as_documented_field_by_field() -> None:
    told_of = replace(BUSY, note="in a pid namespace")
    alone = server(slot(), frozen=None)
    assert check(status_json([told_of, alone], 1e9)) == set(documented())


def test_a_monitor_can_tell_no_server_from_a_limit_that_is_passed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cowpreload.cli import who

    monkeypatch.setattr(who, "find_masters", list)
    monkeypatch.setattr(who, "of_other_versions", list)
    for command in (["status"], ["status", "--json"], ["status", "1"]):
        assert main(command) == 2
        told = capsys.readouterr()
        assert told.err.startswith("cowpreload: pid")
        assert told.out == ""
