"""The table of faults: gives fixtures and hooks of pytest to conftest.py.

A test of tests/faults takes `faults`, and does what it does under its load. Its row
goes with its report, so that processes of pytest-xdist bring theirs; at the end they
are printed, and written as JSON where `--fault-table` says.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import pytest
from _pytest.mark.structures import ParameterSet
from harness.server import Server
from harness.under_load import UnderLoad

Value = TypeVar("Value")
_ROW = "fault"


def full(*values: object) -> list[ParameterSet]:
    """Parameters of `make test-faults` alone; several are a tuple."""
    cases = [each if isinstance(each, tuple) else (each,) for each in values]
    return [pytest.param(*each, marks=pytest.mark.faults) for each in cases]


class Faults:
    """What a fault test asks for.

    Attributes:
        full: whether this is `make test-faults`.
    """

    def __init__(self, full: bool, record: Callable[[str, object], None]) -> None:
        self.full = full
        self._record = record

    def pick(self, short: Value, full: Value) -> Value:
        """What `make test` does, and what `make test-faults` does."""
        return full if self.full else short

    @contextlib.contextmanager
    def under_load(
        self, fault: str, server: Server, host: str, *, workers: int, **load: Any
    ) -> Iterator[UnderLoad]:
        """Ask the server meanwhile; then it is in full order, or the test fails.

        A loss that the test has not explained (`kill`, `explain`) fails it, too.
        """
        under = UnderLoad(fault, server, host, workers=workers, **load)
        try:
            yield under
            under.recover()
        finally:
            self._record(_ROW, asdict(under.end()))
        lost = under.unexplained()
        assert not lost, "\n".join(["unexplained:", *lost, "known:", *under.known()])

    def add(self, **row: object) -> None:
        """A row of a test that has its own load: the fields of Row."""
        self._record(_ROW, row)


@pytest.fixture(name="faults")
def make_faults(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Faults:
    return Faults(request.config.getoption("--full"), record_property)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="fault tests in full")
    parser.addoption("--fault-table", metavar="FILE", help="write it as JSON")


def rows_of(reports: Sequence[Any]) -> list[dict[str, Any]]:
    """What the tests have recorded, a row for each fault and host, sorted."""
    rows = [
        {**value, "passed": report.outcome == "passed"}
        for report in reports
        if report.when == "call"
        for name, value in report.user_properties
        if name == _ROW
    ]
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = (row["fault"], row["host"])
        merged[key] = _sum(merged[key], row) if key in merged else row
    return [merged[key] for key in sorted(merged)]


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Of two rows of one fault and host; the slower pace."""
    counts = {
        key: value + other[key] for key, value in one.items() if type(value) is int
    }
    causes = one["explained"].keys() | other["explained"].keys()
    return {
        **one,
        **counts,
        "explained": {
            each: one["explained"].get(each, 0) + other["explained"].get(each, 0)
            for each in sorted(causes)
        },
        "pace": max(one["pace"], other["pace"], key=lambda pace: pace[1]),
        "passed": one["passed"] and other["passed"],
    }


def _line(row: dict[str, Any]) -> str:
    causes = ", ".join(f"{count} {what}" for what, count in row["explained"].items())
    before, after = row["pace"]
    pace = f"{before:.2f}/{after:.2f}" if after else "-"
    return (
        f"{row['fault']:<40} {row['host']:<14} {row['requests']:>8} {row['lost']:>5} "
        f"{row['unexplained']:>11} {row['kept_closed']:>11} {row['recyclings']:>10} "
        f"{pace:>10} {'' if row['passed'] else 'FAILED '}{causes}"
    ).rstrip()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table of what ran, and write it."""
    stats = terminalreporter.stats
    rows = rows_of([*stats.get("passed", []), *stats.get("failed", [])])
    path = config.getoption("--fault-table")
    if path:
        Path(path).write_text(json.dumps(rows, indent=1) + "\n")
    if not rows:
        return
    terminalreporter.section("faults")
    terminalreporter.line(
        f"{'fault':<40} {'host':<14} requests  lost unexplained kept-closed "
        "recyclings  s a recycling (before/after), causes"
    )
    for row in rows:
        terminalreporter.line(_line(row))
