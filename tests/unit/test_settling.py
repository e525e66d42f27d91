"""What a worker settles is not traced, and nothing that it inherited is copied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import PYPY, run

import cowpreload
from cowpreload import collector, freezing

PROGRAM = str(Path(__file__).parent.parent / "programs" / "settled.py")
cpython = pytest.mark.skipif(PYPY, reason="nothing is frozen on PyPy")


def settled(what: str) -> dict:
    """What one worker of the program found."""
    return json.loads(run(PROGRAM, what, check=True).stdout)


@cpython
def test_a_settled_cache_is_not_traced_and_no_inherited_page_is_copied() -> None:
    found = settled("cached")
    assert found["before"] > found["cache"]
    assert found["objects"] >= found["before"]
    assert found["after"] < 100
    # The inherited heap is 25 MiB; a worker copies what the call itself runs on.
    assert found["copied"] < 1 << 20
    assert found["took"] < 3 << 20  # a list of all young objects, for a moment


@cpython
def test_garbage_at_the_call_is_freed_and_a_cycle_dropped_later_is_not() -> None:
    found = settled("garbage")
    assert found["collected"] >= 2
    assert found["early"]
    assert found["plain"], "counts free what is in no cycle, settled or not"
    assert not found["late"], "the docs say that it stays"


@cpython
def test_a_cache_that_turns_over_and_settles_each_time_does_not_grow() -> None:
    """One whose entries are cycles does, by each of them: the docs say so."""
    found = settled("periodic")
    plain, cyclic = found["plain"], found["cyclic"]
    assert plain[-1] - plain[1] < 1000
    assert cyclic[-1] - cyclic[1] > 8 * 5000


@cpython
@pytest.mark.parametrize("heap", ["inherited", "later"])
def test_full_collections_do_not_wait_for_a_quarter_of_what_is_frozen(
    heap: str,
) -> None:
    """Until then, garbage in cycles stays: by the freeze, by settle()."""
    found = settled(heap)
    assert 0 < found["lasting"] < found["heap"] / 4


@cpython
def test_other_threads_work_on_while_one_settles() -> None:
    assert settled("threads")["wrong"] == 0


@cpython
def test_a_child_of_a_worker_may_settle_and_the_master_does_not() -> None:
    """Before the freeze and after it: the freeze does what settle() would."""
    found = settled("grandchild")
    assert found["settled"] == "True"
    assert found["in_master"] == [None, None]


def test_nothing_is_done_where_nothing_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freezing._kept, "frozen_by", 1)
    monkeypatch.setattr(freezing._kept, "frozen", True)
    monkeypatch.setattr(collector, "CAN_SETTLE", False)
    assert cowpreload.settle() is None


def test_nothing_is_done_without_a_frozen_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under cow-freeze = off, the collection would copy what the worker inherited."""
    assert cowpreload.settle() is None
    monkeypatch.setattr(freezing._kept, "frozen_by", 1)
    assert cowpreload.settle() is None
