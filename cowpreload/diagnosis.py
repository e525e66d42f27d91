"""What `cowpreload doctor` found: facts, each good or not, and what to do about them.

Frozen records between `doctor/`, which finds them, and `report/`, which shows them.
Sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How good a fact is.

    OK: as it should be, or no matter. WARN: memory or a report is lost. BAD: something
    does not work; the command's exit status says so.
    """

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Fact:
    """One line: what was looked at, and what was seen."""

    status: Status
    name: str
    text: str


@dataclass(frozen=True)
class Advice:
    """What to do: a setting or a line of code, and the figure that it comes from.

    Attributes:
        bytes: that a worker (or, where the text says so, the master) would save; an
            upper bound, and of different advice not to be added up.
    """

    bytes: int
    text: str


@dataclass(frozen=True)
class Part:
    """The facts of one thing: machine, interpreter, hosts, application."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Diagnosis:
    """All parts, and the advice, largest first.

    Attributes:
        printed: lines of the application's own, where it failed: its traceback, and
            what it has written last.
    """

    parts: tuple[Part, ...]
    advice: tuple[Advice, ...] = ()
    printed: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        """Whether any fact is."""
        return any(
            fact.status is Status.BAD for part in self.parts for fact in part.facts
        )


def ok(name: str, text: str) -> Fact:
    """A fact that is as it should be."""
    return Fact(Status.OK, name, text)


def warn(name: str, text: str) -> Fact:
    """A fact by which memory or a report is lost."""
    return Fact(Status.WARN, name, text)


def bad(name: str, text: str) -> Fact:
    """A fact by which something does not work."""
    return Fact(Status.BAD, name, text)
