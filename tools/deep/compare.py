"""Which outcomes are new: pure, from what two regimes recorded.

Takes outcomes by test name, of the plain and the frozen regime, and of repeated runs;
gives differences, each with its kind. No processes, no files.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FINE = {"ok", "expected failure"}
FAILED = {"fail", "error", "unexpected success", "crash", "missing", "unfinished"}

Outcomes = Mapping[str, str]


@dataclass(frozen=True)
class Explained:
    """A difference that follows from immortality, with the reason, checked by hand."""

    suite: str
    test: str  # a pattern, as the shell has them
    versions: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Difference:
    """One test that went worse, or otherwise wrong, in the frozen regime."""

    test: str
    plain: str
    frozen: str
    kind: str = "new"  # new, flaky or explained
    reason: str = ""


def differences(plain: Outcomes, frozen: Outcomes) -> list[Difference]:
    """Tests that are not fine in the frozen regime and were otherwise in the plain.

    A test that ran and is now skipped or missing counts: a failure can hide there.
    """
    found = []
    for test in [*plain, *(name for name in frozen if name not in plain)]:
        was, now = plain.get(test, "missing"), frozen.get(test, "missing")
        if now != was and now not in FINE:
            found.append(Difference(test, was, now))
    return found


def judge(
    found: Iterable[Difference],
    suite: str,
    version: str,
    repeated: Sequence[tuple[Outcomes, Outcomes]],
    table: Sequence[Explained],
) -> list[Difference]:
    """Tell new differences from flaky and from explained ones.

    `repeated` are further (plain, frozen) outcomes of the same tests. A test is flaky
    only if a plain run, too, had something else than it had at first: a test that
    fails in some of the frozen runs alone is new.
    """
    judged = []
    for one in found:
        kind, reason = "new", ""
        entry = explanation(one.test, suite, version, table)
        plain = [run.get(one.test, "missing") for run, _ in repeated]
        frozen = [run.get(one.test, "missing") for _, run in repeated]
        if entry:
            kind, reason = "explained", entry.reason
        elif any(outcome != one.plain for outcome in plain):
            kind, reason = "flaky", f"plain again: {', '.join(plain)}"
        elif repeated:
            reason = f"frozen again: {', '.join(frozen)}"
        judged.append(Difference(one.test, one.plain, one.frozen, kind, reason))
    return judged


def explanation(
    test: str, suite: str, version: str, table: Iterable[Explained]
) -> Explained | None:
    """The entry that covers a test of a suite on a version such as "3.13"."""
    for entry in table:
        if (
            entry.suite == suite
            and version in entry.versions
            and fnmatch.fnmatchcase(test, entry.test)
        ):
            return entry
    return None


def failures(outcomes: Outcomes) -> int:
    return sum(outcome in FAILED for outcome in outcomes.values())
