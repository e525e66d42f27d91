"""The budget of a whole server: what an operator asks for, and the bytes that it is.

Takes the text of `cow-budget`, and the capacity of a process; gives bytes and a log
line. Pure: what the processes take, and who is to go, is native/budget.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cowpreload.units import MIB, format_size, parse_size

# Every gunicorn command imports this module, whatever its class.
if TYPE_CHECKING:
    from cowpreload.capacity import Capacity

# Of a control group: the rest is for its other processes, for the kernel's own memory
# (sockets, page tables) and for a burst before the next reading.
AUTO_PERCENT = 80.0
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True)
class Budget:
    """What was asked for: a size, a part of what there is, `auto`, or none of them."""

    size: int = 0
    percent: float = 0.0
    auto: bool = False

    def __bool__(self) -> bool:
        return self != Budget()


@dataclass(frozen=True)
class Found:
    """The budget of this server in bytes, 0: none; and a log line, or ""."""

    bytes: int
    line: str = ""


def parse(text: str) -> Budget:
    """Read `512M`, `80%`, `auto` or `off`.

    Raises:
        ValueError: it is none of them.
    """
    word = text.strip().lower()
    if word == "off":
        return Budget()
    if word == "auto":
        return Budget(auto=True)
    if word.isdecimal() and int(word) <= 100:  # what uWSGI makes of "80%" in an ini
        raise ValueError(
            f"is that many bytes; write {word}%, in an ini of uWSGI's {word}%%"
        )
    if not word.endswith("%"):
        return Budget(size=parse_size(text))
    number = _PERCENT.fullmatch(word)
    if not number:
        raise ValueError("is no part of the memory; write a number and %, as in 80%")
    percent = float(number[1])
    if not 0 < percent <= 100:
        raise ValueError("is no part of a whole; write one up to 100, as in 80%")
    return Budget(percent=percent)


def show(budget: Budget) -> str:
    """As an operator would write it."""
    if budget.size:
        return format_size(budget.size)
    if budget.percent:
        return f"{budget.percent:g}%"
    return "auto" if budget.auto else "off"


def find(budget: Budget, capacity: Capacity) -> Found:
    """The bytes, for a server whose master may take `capacity`."""
    if budget.size:
        return Found(budget.size)
    if not budget:
        return Found(0)
    if budget.auto and capacity.source == "machine":
        return Found(0, "cow: budget=off: auto, and no control group limits the memory")
    if not capacity.limit:
        return Found(0, "cow: budget=off: how much memory there is cannot be read")
    percent = budget.percent or AUTO_PERCENT
    size = int(capacity.limit * percent / 100)
    whole = f"{percent:g}% of {capacity.limit // MIB}MiB"
    return Found(size, f"cow: budget={format_size(size)} ({whole}, {capacity.source})")
