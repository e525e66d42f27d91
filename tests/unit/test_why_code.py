"""Code that first ran after the fork is told from code that counts for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cowpreload.why.code import was_cold

pytestmark = pytest.mark.skipif(
    not hasattr(was_cold.__code__, "_co_code_adaptive"),
    reason="this Python does not specialize code",
)
ENOUGH = 100


class Plain:
    def __init__(self) -> None:
        self.value = 1


class Other(Plain):
    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


def make() -> Callable[[Any, bool], object]:
    """A function of its own that has never run."""
    names: dict[str, Any] = {}
    source = (
        "def read(thing, other):\n"
        "    if other:\n"
        "        return [thing.value + 1 for _ in range(2)]\n"
        "    return thing.value\n"
    )
    exec(source, names)
    function: Callable[[Any, bool], object] = names["read"]
    return function


def bytes_of(function: Any) -> bytes:
    return bytes(function.__code__._co_code_adaptive)


def ran(function: Any, before: bytes) -> bool:
    """Whether what changed since was cold."""
    after = bytes_of(function)
    changed = {
        at
        for at in range(0, len(before), 2)
        if before[at : at + 2] != after[at : at + 2]
    }
    assert changed
    return was_cold(before, changed)


def test_code_that_never_ran_is_cold() -> None:
    function = make()
    before = bytes_of(function)
    for _ in range(ENOUGH):
        function(Plain(), False)
    assert ran(function, before)


def test_a_branch_that_never_ran_is_cold_in_a_function_that_did() -> None:
    function = make()
    for _ in range(ENOUGH):
        function(Plain(), False)
    before = bytes_of(function)
    for _ in range(ENOUGH):
        function(Plain(), True)
    assert ran(function, before)


def test_counters_of_an_instruction_that_cannot_specialize_are_not_cold() -> None:
    """They are written at each run, after 2 or 2000 of them alike."""
    function = make()
    things = [Plain(), Other()]
    for number in range(ENOUGH):
        function(things[number % 2], False)
    before = bytes_of(function)
    after = before
    while after == before:
        for each in things:
            function(each, False)
        after = bytes_of(function)
    assert not ran(function, before)


def test_nothing_that_changed_is_not_cold() -> None:
    assert not was_cold(bytes_of(make()), set())
