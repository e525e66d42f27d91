"""What a fault explains: the requests in flight then, and no more than it could."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace

from fault_table import rows_of
from harness.ledger import Cause, Ledger
from harness.load import Loss
from harness.under_load import Row
from hypothesis import given
from hypothesis import strategies as st


def lost(begun: float, ended: float, how: str = "reset") -> Loss:
    return Loss(begun, ended, how, False, "/")


KILL = Cause("SIGKILL", 1, 10.0, 10.1)


def test_a_loss_before_or_after_the_kill_is_not_explained_by_it() -> None:
    settled = Ledger([KILL]).settle([lost(8, 9), lost(9.9, 10.05), lost(10.2, 10.3)])
    assert settled.explained == {"SIGKILL": 1}
    assert [each.begun for each in settled.unexplained] == [8, 10.2]


def test_a_kill_explains_no_more_requests_than_its_worker_had() -> None:
    settled = Ledger([KILL]).settle([lost(9.9, 10.05), lost(9.9, 10.06)])
    assert len(settled.unexplained) == 1


def test_a_wrong_answer_is_nothing_that_a_kill_explains() -> None:
    assert Ledger([KILL]).settle([lost(9.9, 10.05, "wrong")]).unexplained


def test_of_two_kills_the_later_one_is_left_for_the_later_loss() -> None:
    causes = [Cause("late", 1, 10.0, 12.0), Cause("early", 1, 10.0, 11.0)]
    settled = Ledger(causes).settle([lost(10.5, 10.6), lost(11.5, 11.6)])
    assert settled.explained == {"early": 1, "late": 1}


TIMES = st.floats(0, 100)
SPANS = st.tuples(TIMES, TIMES).map(sorted)


@given(st.lists(SPANS), st.lists(st.tuples(SPANS, st.integers(0, 3))))
def test_each_loss_is_counted_once_and_no_cause_above_its_most(
    spans: list[list[float]], causes: list[tuple[list[float], int]]
) -> None:
    ledger = Ledger(
        [Cause(str(at), most, *span) for at, (span, most) in enumerate(causes)]
    )
    settled = ledger.settle([lost(*span) for span in spans])
    explained = sum(settled.explained.values())
    assert explained + len(settled.unexplained) == len(spans)
    for cause in ledger.causes:
        assert settled.explained.get(cause.what, 0) <= cause.most
        if settled.explained.get(cause.what, 0) < cause.most:
            assert not any(cause.fits(each) for each in settled.unexplained)


def reported(row: Row, outcome: str = "passed") -> SimpleNamespace:
    """A test's report, as it comes from a process of pytest-xdist."""
    properties = [("other", 1), ("fault", asdict(row))]
    return SimpleNamespace(when="call", outcome=outcome, user_properties=properties)


def test_rows_of_one_fault_and_host_are_added_up_and_one_failure_is_theirs() -> None:
    one = Row("TERM", "sync", 10, 0, 2, 1, 0, 5, {"SIGKILL": 1}, (0.1, 0.2))
    other = Row("TERM", "sync", 20, 3, 4, 0, 1, 6, {"SIGKILL": 1, "end": 3}, (0.1, 0.4))
    apart = Row("TERM", "asgi", 1, 0, 0, 0, 0, 0)
    reports = [reported(one, "failed"), reported(other), reported(apart)]
    first, second = rows_of(reports)
    assert (first["host"], first["passed"]) == ("asgi", True)
    assert (second["requests"], second["lost"], second["unexplained"]) == (30, 6, 1)
    assert second["explained"] == {"SIGKILL": 2, "end": 3}
    assert second["pace"] == (0.1, 0.4)
    assert not second["passed"]
