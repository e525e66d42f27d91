"""The collector is stopped and started again on every interpreter."""

from __future__ import annotations

import gc

import pytest
from conftest import PYPY

from cowpreload import collector


def collections() -> int:
    """Collections of the youngest generation, so far."""
    return int(gc.get_stats()[0]["collections"])


def cycles() -> None:
    for _ in range(20_000):
        cycle: list[object] = []
        cycle.append(cycle)


@pytest.mark.skipif(PYPY, reason="PyPy does not count its collections like this")
def test_a_stopped_collector_stays_stopped_until_it_is_resumed() -> None:
    before = gc.get_threshold()
    resume = collector.stop()
    try:
        gc.enable()
        counted = collections()
        cycles()
        assert collections() == counted
    finally:
        resume()
    assert gc.get_threshold() == before
    cycles()
    assert collections() > counted


def test_resumed_is_enabled() -> None:
    collector.stop()()
    assert gc.isenabled()


def test_what_cannot_freeze_says_why() -> None:
    assert collector.CAN_FREEZE is not PYPY
    assert bool(collector.WHY_NOT) is PYPY
    collector.unfreeze()
