"""The policy, driven with recorded and made-up readings; no process, no clock."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cowpreload import _core
from cowpreload.records import Action, History, Limits, Reading, Verdict

MIB = 1 << 20
LIMITS = Limits(max_private=100 * MIB, strikes=3, min_lifetime=10)


def reading(private_mib: float) -> Reading:
    return Reading(int(private_mib * MIB), 0, 0, 0)


def replay(
    limits: Limits, private_mib: list[float], history: History | None = None
) -> list[Verdict]:
    """Judge one reading a second of a worker that became ready at second 1000."""
    history = history or History(ready_at=1000.0, ready_private=20 * MIB)
    verdicts = []
    for second, size in enumerate(private_mib, start=1):
        verdict = _core.judge(limits, history, reading(size), 1000.0 + second)
        history = replace(
            history, strikes=verdict.strikes, over_since=verdict.over_since
        )
        verdicts.append(verdict)
    return verdicts


def actions(verdicts: list[Verdict]) -> list[Action]:
    return [each.action for each in verdicts]


def first_recycle(verdicts: list[Verdict]) -> int:
    """The second of the first recycling, 0 if there is none."""
    found = actions(verdicts)
    return found.index(Action.RECYCLE) + 1 if Action.RECYCLE in found else 0


def test_only_limits_that_are_set_act() -> None:
    assert set(actions(replay(Limits(strikes=1, min_lifetime=0), [1e6] * 50))) == {
        Action.KEEP
    }


def test_the_limit_itself_is_allowed() -> None:
    assert not first_recycle(replay(LIMITS, [100] * 50))


def test_strikes_must_be_in_a_row() -> None:
    leaky = [101, 101, 99] * 20
    assert not first_recycle(replay(LIMITS, leaky))
    assert first_recycle(replay(LIMITS, [50] * 20 + [101] * 10)) == 23


def test_min_lifetime_spares_a_young_worker() -> None:
    assert first_recycle(replay(LIMITS, [101] * 50)) == 10


def test_the_hard_limit_acts_at_once() -> None:
    limits = replace(LIMITS, max_private_hard=200 * MIB)
    (verdict,) = replay(limits, [201])
    assert (verdict.action, verdict.reason) == (Action.KILL, "max-private-hard")
    assert verdict.limit == 200 * MIB


def test_the_hard_limit_spares_a_worker_that_was_over_it_when_fresh() -> None:
    """Else each next one would be killed as soon as it is ready."""
    limits = replace(LIMITS, max_private=0, max_private_hard=200 * MIB)
    history = History(ready_at=1000.0, ready_private=210 * MIB)
    assert set(actions(replay(limits, [300] * 20, history))) == {Action.KEEP}
    assert not _core.reading_due(limits, history, 300 * MIB, 1005)


def test_no_limit_acts_before_ready() -> None:
    limits = replace(LIMITS, strikes=1, max_private_hard=200 * MIB)
    verdict = _core.judge(limits, History(), reading(500), 5000.0)
    assert verdict.action is Action.KEEP


def test_growth_counts_from_the_ready_reading() -> None:
    limits = Limits(max_growth=30 * MIB, strikes=1, min_lifetime=0)
    assert first_recycle(replay(limits, [49, 50, 51])) == 3
    (*_, last) = replay(limits, [51])
    assert (last.reason, last.limit) == ("max-growth", 50 * MIB)


def test_jitter_delays_by_what_the_worker_drew() -> None:
    history = History(ready_at=1000.0, ready_private=20 * MIB, jitter=4.0)
    assert first_recycle(replay(LIMITS, [50] * 20 + [101] * 20, history)) == 25


def test_a_fresh_worker_over_its_limit_is_spared_longer_each_time() -> None:
    spared = []
    early = 0
    for _ in range(12):
        history = History(ready_at=1000.0, ready_private=150 * MIB, early=early)
        spared.append(_core.spared(replace(LIMITS, min_lifetime=0), history))
        verdict = _core.judge(
            LIMITS, replace(history, strikes=9, over_since=1001), reading(150), 1e6
        )
        early = verdict.early
    assert spared[:4] == [10, 20, 40, 80]
    assert spared[-1] == 3600


def test_a_late_recycling_earns_no_backoff() -> None:
    verdicts = replay(LIMITS, [50] * 60 + [101] * 3)
    assert verdicts[-1].action is Action.RECYCLE
    assert verdicts[-1].early == 0


SIZES = st.integers(min_value=0, max_value=1 << 40)


@given(SIZES, SIZES, SIZES, SIZES, st.integers(1, 10), st.floats(0, 1e6))
def test_a_kill_or_recycling_always_names_a_limit_that_is_passed(
    soft: int, hard: int, growth: int, private: int, strikes: int, now: float
) -> None:
    limits = Limits(soft, hard, growth, 0, 1, strikes, 1)
    history = History(1.0, 1 << 20, 0, 1.0, strikes)
    verdict = _core.judge(limits, history, Reading(private, 0, 0, 0), now)
    if verdict.action is not Action.KEEP:
        assert verdict.limit < private


def test_a_reading_is_due_when_the_bound_passes_a_limit() -> None:
    history = History(ready_at=1.0, ready_private=20 * MIB)
    assert not _core.reading_due(LIMITS, history, 100 * MIB, 5)
    assert _core.reading_due(LIMITS, history, 100 * MIB + 1, 5)
    assert _core.reading_due(LIMITS, replace(history, strikes=1), 0, 5)
    assert not _core.reading_due(Limits(), history, 1 << 50, 5)


def test_a_spared_worker_is_not_read_at_every_look() -> None:
    """It has its strikes; only time, or the hard limit, can change the verdict."""
    history = History(ready_at=1.0, ready_private=20 * MIB, strikes=3, over_since=2)
    over = 150 * MIB
    assert not _core.reading_due(LIMITS, history, over, 5)
    assert _core.reading_due(LIMITS, history, over, 11)
    hard = replace(LIMITS, max_private_hard=140 * MIB)
    assert _core.reading_due(hard, history, over, 5)


def test_the_hard_limit_is_looked_at_sooner_the_nearer_it_is() -> None:
    """A request can fill gigabytes in the second between two looks."""
    history = History(ready_at=1.0, ready_private=20 * MIB)
    limits = Limits(max_private_hard=2000 * MIB, interval=1)
    naps = [_core.nap(limits, history, size * MIB, 0) for size in (20, 900, 1990, 2100)]
    assert naps == sorted(naps, reverse=True)
    assert naps[-1] == 0.25
    # Four MiB a millisecond would not have passed it in the meantime.
    assert naps[0] * 4000 <= 1980
    assert _core.nap(limits, history, 1990 * MIB, 100) == 0.15
    # Sooner still while memory is on its way, and never later than the interval.
    assert _core.nap(limits, history, 1990 * MIB, 1 << 20) == 0.005
    assert _core.nap(replace(limits, interval=0.05), history, 0, 0) == 0.05


def test_without_a_hard_limit_nothing_is_looked_at_between() -> None:
    history = History(ready_at=1.0, ready_private=20 * MIB)
    assert _core.nap(LIMITS, history, 200 * MIB, 1 << 20) == 1.0
    hard = Limits(max_private_hard=100 * MIB)
    assert _core.nap(hard, History(), 200 * MIB, 0) == 1.0


LEAVING = Limits(
    max_private=100 * MIB, max_private_hard=300 * MIB, strikes=1, graceful=30
)
ASKED = History(
    ready_at=1000.0, ready_private=20 * MIB, asked_at=1000.0, asked_limit=100 * MIB
)


def test_a_worker_that_does_not_go_is_asked_again_and_then_ended() -> None:
    """As long as its host gives it, and as long again."""
    verdicts = replay(LEAVING, [150] * 70, ASKED)
    assert actions(verdicts).index(Action.ASK_AGAIN) + 1 == 30
    again = replay(LEAVING, [150] * 70, replace(ASKED, asked_again=True))
    assert actions(again).index(Action.KILL) + 1 == 60
    assert set(actions(again)[:59]) == {Action.KEEP}
    for verdict in (verdicts[29], again[59]):
        assert (verdict.reason, verdict.limit) == ("unheeded", 100 * MIB)


def test_a_worker_that_leaves_is_read_when_its_time_is_over() -> None:
    assert not _core.reading_due(LEAVING, ASKED, 150 * MIB, 1029)
    assert _core.reading_due(LEAVING, ASKED, 150 * MIB, 1030)
    again = replace(ASKED, asked_again=True)
    assert not _core.reading_due(LEAVING, again, 150 * MIB, 1059)
    assert _core.reading_due(LEAVING, again, 150 * MIB, 1060)


def test_the_hard_limit_acts_on_a_worker_that_leaves() -> None:
    (verdict,) = replay(LEAVING, [301], ASKED)
    assert (verdict.action, verdict.reason) == (Action.KILL, "max-private-hard")
    assert _core.reading_due(LEAVING, ASKED, 301 * MIB, 1001)


def test_a_host_without_an_end_to_its_patience_has_none_here() -> None:
    patient = replace(LEAVING, graceful=0)
    assert set(actions(replay(patient, [150] * 500, ASKED))) == {Action.KEEP}
    assert not _core.reading_due(patient, ASKED, 150 * MIB, 9000)
