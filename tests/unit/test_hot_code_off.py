"""Where no hot code is laid, on every interpreter: a line says why."""

from __future__ import annotations

import sys

import pytest
from conftest import PYPY, run

from cowpreload.hosts.laying import Laying
from cowpreload.settings import Settings

UNKNOWN = "the code of this interpreter is not known (CPython 3.12 to 3.15 is)"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (Settings(seal="off"), "cow: hot-code=off: seal=off: hot code is laid behind"),
        (Settings(freeze="off"), "cow: hot-code=off: freeze=off: hot code is laid"),
    ],
)
def test_a_setting_that_leaves_it_where_it_is_is_named(
    settings: Settings, line: str
) -> None:
    laying = Laying(settings, lambda: None)
    laying.begin()
    laying.look()
    (said,) = laying.report.lines()
    assert said.startswith(line)


def test_nothing_is_said_where_nobody_wants_it() -> None:
    laying = Laying(Settings(seal="off", hot_code="off"), lambda: None)
    laying.look()
    assert laying.report.lines() == []


@pytest.mark.skipif(
    not PYPY and sys.version_info >= (3, 12), reason="its code is known"
)
def test_an_interpreter_whose_code_is_not_known_is_named() -> None:
    done = run("-c", "import cowpreload; print(cowpreload.freeze().hot.why_not)")
    assert done.stdout == f"{UNKNOWN}\n"
