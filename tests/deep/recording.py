"""A unittest result that writes each test's outcome down as soon as it is known.

Takes a Records; gives JSON lines `{"id", "outcome", "text"}`, and a `start` line
before each test so that a crash has a name. The worst of a test's outcomes counts:
a failed subtest fails its test.
"""

# ruff: noqa: N802  (unittest's names)

from __future__ import annotations

import unittest
from collections import Counter
from typing import Any

from forked import Records

OUTCOMES = ("ok", "expected failure", "skip", "unexpected success", "fail", "error")


class Recording(unittest.TextTestResult):
    """Built by TextTestRunner, which is asked for a class: see `recording`."""

    records: Records

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seen: Counter[str] = Counter()
        self._name: str | None = None
        self._outcome = "ok"
        self._text = ""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        plain = test.id()
        self._seen[plain] += 1
        # Generated tests share names; their order is the same in both regimes.
        times = self._seen[plain]
        self._name = plain if times == 1 else f"{plain} #{times}"
        self._outcome, self._text = "ok", ""
        self.records.write(event="start", id=self._name)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.records.write(id=self._name, outcome=self._outcome, text=self._text)
        self._name = None

    def _add(self, test: Any, outcome: str, text: str = "") -> None:
        if self._name is None:
            # Not a test: a fixture of a class or module.
            self.records.write(id=test.id(), outcome=outcome, text=text)
        elif OUTCOMES.index(outcome) >= OUTCOMES.index(self._outcome):
            self._outcome = outcome
            self._text = f"{self._text}\n{text}" if self._text else text

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._add(test, "error", self.errors[-1][1])

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._add(test, "fail", self.failures[-1][1])

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._add(test, "skip", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._add(test, "expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._add(test, "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            text = (self.failures if failed else self.errors)[-1][1]
            self._add(test, "fail" if failed else "error", f"{subtest}\n{text}")


def recording(records: Records) -> type[Recording]:
    """The class to give to a test runner, bound to these records."""
    return type("Recording", (Recording,), {"records": records})
