"""What `make soak` says of a run: slopes, what explains a loss, the plan, the table."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from harness.load import Loss
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tools"))

from soak import deaths, lost, mix
from soak.deaths import Death, Deaths, Stop
from soak.lost import Lost, explain
from soak.result import MOST, HostResult, from_json
from soak.slopes import BIN, Sample, slope
from soak.table import table

# ---- slopes


def series(count: int, per_bin: float, segment: object = None) -> list[Sample]:
    return [Sample(i * BIN + 1, i * per_bin, segment) for i in range(count)]


def test_a_steady_growth_is_told_and_sure() -> None:
    found = slope(series(30, 0.01))
    assert found is not None
    assert found.per_hour == pytest.approx(0.01 * 3600 / BIN)
    assert found.is_over(1.7)
    assert not found.is_over(1.9)


def test_one_peak_is_no_growth() -> None:
    samples = series(30, 0.0)
    samples[20] = replace(samples[20], value=50.0)
    found = slope(samples)
    assert found is not None
    assert found.per_hour == 0
    assert not found.is_over(0)


def test_a_step_between_two_segments_is_no_growth() -> None:
    """A warm up anew makes the master larger, once."""
    later = [replace(each, at=each.at + 600, value=9.0) for each in series(30, 0.0)]
    moved = [replace(each, segment="warmed anew") for each in later]
    found = slope([*series(30, 0.0), *moved])
    assert found is not None
    assert found.per_hour == 0
    assert (found.first, found.last) == (0, 9)
    together = slope([*series(30, 0.0), *later])
    assert together is not None
    assert together.per_hour > 0


def test_too_few_samples_tell_no_slope() -> None:
    found = slope(series(3, 1.0))
    assert found is not None
    assert found.low is found.high is None
    assert not found.is_over(0)
    assert slope([]) is None


@given(st.lists(st.floats(0, 100), min_size=4, max_size=40), st.floats(-5, 5))
def test_a_slope_lies_in_its_interval_and_moves_with_the_series(
    values: list[float], per_bin: float
) -> None:
    flat = [Sample(i * BIN, value) for i, value in enumerate(values)]
    tilted = [Sample(each.at, each.value + i * per_bin) for i, each in enumerate(flat)]
    one, other = slope(flat), slope(tilted)
    assert one is not None
    assert other is not None
    for each in (one, other):
        assert each.low is None or each.low <= each.per_hour
        assert each.high is None or each.high >= each.per_hour
    moved = per_bin * 3600 / BIN
    assert other.per_hour - one.per_hour == pytest.approx(moved, abs=1e-6)


# ---- what explains a loss


def a_loss(number: int = 1, by: int = 0, idle: float = 0.0, **given: object) -> Lost:
    values = {
        "begun": 100.0, "ended": 101.0, "how": "reset", "kept": by > 0, "text": "/"
    }  # fmt: skip
    return Lost(number, Loss(**{**values, **given}), by, idle)  # type: ignore[arg-type]


OURS = Death(100.5, 7, deaths.BY_US)


def test_a_loss_is_explained_by_the_death_of_the_worker_that_had_it() -> None:
    assert explain(a_loss(), [OURS], [], {1: 7}) == deaths.BY_US


def test_the_death_of_another_worker_explains_no_loss() -> None:
    assert explain(a_loss(), [OURS], [], {1: 8}) is None
    assert explain(a_loss(by=8), [OURS], [], {}) is None


def test_a_death_before_or_long_after_the_request_explains_no_loss() -> None:
    for at in (98.0, 103.0):
        assert explain(a_loss(), [replace(OURS, at=at)], [], {1: 7}) is None


def test_a_limit_s_kill_explains_as_late_as_the_master_logs_it() -> None:
    death = Death(105.0, 7, deaths.BY_LIMIT)
    assert explain(a_loss(), [death], [], {1: 7}) == deaths.BY_LIMIT
    assert explain(a_loss(), [death], [], {}) is None  # whose it was is not known


def test_a_request_that_nobody_has_begun_is_explained_by_time_and_told_apart() -> None:
    assert explain(a_loss(), [OURS], [], {}) == lost.BY_TIME + deaths.BY_US
    assert explain(a_loss(), [], [], {}) is None


def test_a_worker_s_death_while_its_connection_was_idle_explains_the_loss() -> None:
    death = replace(OURS, at=97.0)
    assert explain(a_loss(by=7, idle=4.0), [death], [], {}) == deaths.BY_US
    assert explain(a_loss(by=7, idle=1.0), [death], [], {}) is None


def test_a_stop_explains_what_it_held_for_longer_than_keepalive_alone() -> None:
    long, short = Stop(7, 98.0, 101.0), Stop(7, 100.0, 101.0)
    held = a_loss(by=7)
    assert explain(a_loss(by=7, idle=2.0), [], [long], {}) == lost.AS_WITHOUT
    assert explain(held, [], [short], {}) is None
    assert explain(a_loss(by=8, idle=2.0), [], [long], {}) is None
    begun = {1: 7}  # it was read: what comes after is the worker's
    assert explain(a_loss(by=7, idle=2.0), [], [long], begun) is None


# ---- who died


def test_a_worker_that_nobody_meant_to_end_is_unexpected() -> None:
    found = Deaths()
    found.kills(1)
    found.stalls(3)
    for line in (
        "Worker (pid:1) was sent SIGKILL! Perhaps out of memory?",
        "cow: worker=1 gen=2 pid=2 killed private=200MiB hard-limit=160MiB age=3s",
        "DAMN ! worker 2 (pid: 2) died, killed by signal 9 :( trying respawn ...",
        "Worker (pid:3) was sent SIGKILL! Perhaps out of memory?",
        "Worker (pid:4) was sent SIGTERM!",
    ):
        found.read(line, 1.0)
    assert found.unexpected == []
    assert found.causes == {
        deaths.BY_US: 1, deaths.BY_LIMIT: 1, deaths.BY_HOST: 1
    }  # fmt: skip
    for line in (
        "Worker (pid:5) was sent SIGSEGV!",
        "DAMN ! worker 2 (pid: 6) died, killed by signal 11 :( trying respawn ...",
        "Worker (pid:7) exited with code 1.",
        "Worker (pid:8) was sent SIGKILL! Perhaps out of memory?",
    ):
        found.read(line, 2.0)
    assert len(found.unexpected) == 4


# ---- the plan


@given(st.integers(0, 1000), st.sampled_from(["sync", "uwsgi-threads"]))
def test_a_seed_gives_the_same_acts_again_and_a_quiet_end(seed: int, host: str) -> None:
    acts = mix.plan(seed, host, 1200)
    assert acts == mix.plan(seed, host, 1200)
    assert acts != mix.plan(seed + 1, host, 1200)
    assert max(each.at for each in acts) < 1140
    assert {each.kind for each in acts} >= {mix.KILL, mix.RUNAWAY, mix.STOP, mix.HUP}
    without = mix.plan(seed, host, 1200, control=True)
    assert set(without) <= set(acts)
    assert not {each.kind for each in without} & set(mix.OURS)


# ---- the result

RESULT = HostResult(
    host="sync", cow=True, seconds=1200, quiet_seconds=60, right=5000, kept=0,
    explained={deaths.BY_US: 3}, unexplained=(), recycled={"max-growth": 20},
    killed={}, unheeded=0, quiet_recycled=2, acts={"kill": 4}, deaths={}, unexpected=(),
    answered=0, generations=50, boards=1, freezes=2,
    slopes={name: slope(series(60, 0.0)) for name in MOST}, zombies=0, left=0,
    tickets=1, tickets_left=0, not_ready=0,
    why={"runs": 5, "gone": 1, "failures": []}, odd=(), exit_code=0,
)  # fmt: skip
GROWING = {**RESULT.slopes, "master private": slope(series(60, 0.1))}


def test_a_run_as_it_should_be_has_no_fault() -> None:
    assert RESULT.faults() == []
    assert (RESULT.lost, RESULT.requests) == (3, 5003)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"unexplained": ("7 /: reset",)}, "lost, unexplained: 7 /: reset"),
        ({"unexpected": ("sent SIGSEGV",)}, "worker's end: sent SIGSEGV"),
        ({"odd": ("Traceback",)}, "log: Traceback"),
        ({"slopes": GROWING}, "master private: grows by 18.0 MiB an hour"),
        ({"zombies": 1}, "zombies: 1"),
        ({"left": 2}, "processes left: 2"),
        ({"tickets_left": 1}, "tickets kept by workers that stay: 1"),
        ({"not_ready": 1}, "workers not ready at the end: 1"),
        ({"answered": 1}, "runaways over the hard limit that had an answer: 1"),
        ({"quiet_recycled": 0}, "no worker was recycled after the faults"),
        ({"exit_code": 3}, "the master's exit code is 3"),
        ({"exit_code": None}, "the master did not end"),
        ({"why": {"runs": 1, "gone": 0, "failures": ["why 7: exit 1"]}}, "why 7"),
    ],
)
def test_what_must_not_be_is_a_fault(changed: dict[str, object], said: str) -> None:
    (fault,) = replace(RESULT, **changed).faults()  # type: ignore[arg-type]
    assert fault.startswith(f"sync: {said}")


def test_a_short_run_calls_no_memory_a_leak() -> None:
    assert replace(RESULT, slopes=GROWING, seconds=500).faults() == []


def test_the_table_is_the_same_out_of_the_json() -> None:
    again = from_json(json.loads(json.dumps(asdict(RESULT))))
    assert table([again]) == table([RESULT])
    lines = table([RESULT, replace(RESULT, host="asgi", cow=False)]).splitlines()
    assert lines[0] == "| | sync | asgi, without us |"
    assert "| lost, unexplained | 0 | 0 |" in lines
    assert "| recycled | 20 max-growth | - |" in lines
