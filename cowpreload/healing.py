"""Heal: give back, in a worker, pages that were copied and are again as they were.

Takes, in the master, the heap right before the first fork, and moves it behind a file
in memory, which workers map privately; gives a MoveReport. In a worker `turn` compares
its copies with the file and drops those that are equal: native/moved.h. Main
interpreter and main thread only. Must not raise.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from cowpreload._core import check, ffi, lib
from cowpreload.settings import Settings
from cowpreload.units import format_size

_WHY_NOT: Final = {
    lib.COW_UNMOVED_THREADS: "a thread of the application runs in the master",
    lib.COW_UNMOVED_ALLOCATOR: "it needs CPython's own allocator over glibc's",
    lib.COW_UNMOVED_NOTHING: "no heap was found to move",
    lib.COW_UNMOVED_STRICT: "memory is not overcommitted here (vm.overcommit_memory "
    "is 2), or the size of files is limited (ulimit -f)",
    lib.COW_UNMOVED_LATE: "it acts from the start of a server of gunicorn or uWSGI on",
    lib.COW_UNMOVED_PAGES: "this machine's pages are not of 4 KiB",
}


@dataclass(frozen=True)
class MoveReport:
    """What was moved behind a file.

    Attributes:
        bytes: of it; 0: nothing.
        seconds: that it took.
        why_not: why nothing or not all of it was; "" if it was.
    """

    bytes: int = 0
    seconds: float = 0.0
    why_not: str = ""

    def line(self) -> str:
        """One log line, without a newline."""
        if not self.bytes:
            return f"cow: merge=off: {self.why_not}"
        part = f": in part: {self.why_not}" if self.why_not else ""
        return (
            f"cow: merge=self moved={format_size(self.bytes)} "
            f"seconds={self.seconds:.2f}{part}"
        )


def begin(settings: Settings) -> None:
    """Before the application is loaded: note where its objects are to be."""
    if settings.merge == "self":
        lib.cow_arenas_note()


def begun() -> bool:
    """Whether this process has begun before its application was loaded."""
    return bool(lib.cow_arenas_noted())


def move() -> MoveReport:
    """Move the heap that there is behind a file; again, when it was loaded anew."""
    raw = ffi.new("struct cow_moved *")
    lib.cow_move(raw)
    why_not = ""
    if raw.why_not == lib.COW_UNMOVED_SYSTEM:
        why_not = os.strerror(raw.error)
    elif raw.why_not != lib.COW_MOVED:
        why_not = _WHY_NOT[raw.why_not]
    return MoveReport(raw.bytes, raw.us / 1e6, why_not)


@dataclass(frozen=True)
class HealReport:
    """What one heal did.

    Attributes:
        copied: bytes of the inherited heap that were this process's own.
        healed: of these, given back.
        seconds: that it took.
        refused: why nothing was looked at; "" if it was.
    """

    copied: int
    healed: int
    seconds: float
    refused: str


_out = ffi.new("struct cow_heal *")
_PAGE: Final = 4096


def turn(idle: bool) -> HealReport | None:
    """Between two requests of a worker, or with nothing to do: heal, if it pays.

    Returns:
        What it did, or None: it did not pay. Costs a microsecond then.
    """
    if not lib.cow_heal_turn(idle, _out):
        return None
    return _report()


def heal() -> HealReport:
    """Heal now, whatever it costs: for tests."""
    lib.cow_heal(_out)
    return _report()


def checked() -> tuple[HealReport, int]:
    """Heal now, and how many pages then differed from what they were: 0, or a fault."""
    wrong = ffi.new("uint64_t *")
    check(lib.cow_heal_check(_out, wrong))
    return _report(), int(wrong[0])


def _report() -> HealReport:
    refused = _WHY_NOT.get(_out.refused, "") if _out.refused else ""
    if _out.refused == lib.COW_UNMOVED_THREADS:
        refused = "another thread runs in this worker"
    elif _out.refused == lib.COW_UNMOVED_SYSTEM:
        refused = "the system does not tell which pages were copied"
    return HealReport(_out.copied * _PAGE, _out.healed * _PAGE, _out.us / 1e6, refused)
