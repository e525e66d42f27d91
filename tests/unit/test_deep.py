"""`make test-deep` tells a new failure from an old, a flaky and an explained one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

TOOLS = Path(__file__).parent.parent.parent / "tools"
PROGRAMS = Path(__file__).parent.parent / "deep"
sys.path.insert(0, str(TOOLS))

from deep.compare import FINE, Explained, differences, judge  # noqa: E402
from deep.runs import Run, read  # noqa: E402

OUTCOMES = st.dictionaries(
    st.sampled_from("abcdef"), st.sampled_from(["ok", "skip", "fail", "error"])
)


@given(OUTCOMES)
def test_nothing_differs_from_itself(outcomes: dict[str, str]) -> None:
    assert differences(outcomes, outcomes) == []


@given(OUTCOMES, OUTCOMES)
def test_every_test_that_went_wrong_is_found(
    plain: dict[str, str], frozen: dict[str, str]
) -> None:
    found = {one.test for one in differences(plain, frozen)}
    for test in {*plain, *frozen}:
        was, now = plain.get(test), frozen.get(test)
        assert (test in found) == (was != now and now not in FINE)


def test_a_test_that_vanished_is_a_difference() -> None:
    [one] = differences({"t": "ok"}, {})
    assert (one.plain, one.frozen) == ("ok", "missing")


def judged(repeated: list[tuple[str, str]], *table: Explained) -> str:
    found = differences({"t": "ok"}, {"t": "fail"})
    runs = [({"t": plain}, {"t": frozen}) for plain, frozen in repeated]
    [one] = judge(found, "cpython", "3.13", runs, table)
    return one.kind


@pytest.mark.parametrize(
    ("repeated", "kind"),
    [
        ([("ok", "fail"), ("ok", "fail")], "new"),
        ([("ok", "ok"), ("ok", "ok")], "new"),
        ([("ok", "ok"), ("fail", "ok")], "flaky"),
    ],
)
def test_only_the_plain_regime_can_show_that_a_test_is_flaky(
    repeated: list[tuple[str, str]], kind: str
) -> None:
    assert judged(repeated) == kind


@pytest.mark.parametrize(
    ("suite", "test", "version", "kind"),
    [
        ("cpython", "t", "3.13", "explained"),
        ("cpython", "t", "3.12", "new"),
        ("cpython", "other", "3.13", "new"),
        ("django", "t", "3.13", "new"),
    ],
)
def test_an_explanation_covers_what_it_names_alone(
    suite: str, test: str, version: str, kind: str
) -> None:
    assert judged([], Explained(suite, test, (version,), "because")) == kind


CRASHING = """
import os, signal, sys, unittest
sys.path.insert(0, {programs!r})
from forked import Records, fork_here, leave
from recording import recording

class Tests(unittest.TestCase):
    def test_a(self): pass
    def test_b(self):
        for n in range(2):
            with self.subTest(n=n):
                self.assertEqual(n, 0)
    def test_c(self): self.skipTest("not here")
    def test_d(self): os.kill(os.getpid(), signal.SIGKILL)

records = Records(sys.argv[1])
suite = unittest.defaultTestLoader.loadTestsFromTestCase(Tests)
fork_here("plain", records)
unittest.TextTestRunner(resultclass=recording(records)).run(suite)
leave(records)
"""


def test_a_crash_is_blamed_on_the_test_that_ran(tmp_path: Path) -> None:
    """What ran before it keeps its outcome; the parent outlives its child."""
    records = tmp_path / "records"
    program = CRASHING.format(programs=str(PROGRAMS))
    subprocess.run([sys.executable, "-c", program, records], check=True)
    run = read(records)
    names = {test.rpartition(".")[2]: outcome for test, outcome in run.outcomes.items()}
    assert names == {
        "test_a": "ok",
        "test_b": "fail",
        "test_c": "skip",
        "test_d": "crash",
    }
    assert f"ended with -{signal.SIGKILL:d}" in run.trouble
    assert not run.immortal  # the plain regime leaves counts alone


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="PyPy has no seal")
def test_a_regime_that_is_not_what_it_says_is_told(tmp_path: Path) -> None:
    """A suite that passes over a heap that is not immortal, or not sealed, says little.

    Whether this one is depends on the interpreter; that it is told does not.
    """
    records = tmp_path / "records"
    program = CRASHING.format(programs=str(PROGRAMS)).replace("plain", "frozen")
    subprocess.run([sys.executable, "-c", program, records], check=True)
    run = read(records)
    assert [each for each in run.lacks() if "immortal" not in each] == []
    assert (run.lacks() == []) == run.immortal
    heap = "Python: not its own"
    unsealed = Run(immortal=True, report={"sealed": {"holes": 9, "unsealed": [heap]}})
    assert unsealed.lacks() == [f"not sealed: {heap}"]
    assert Run(immortal=True).lacks() == ["no hole was filled before the fork"]
