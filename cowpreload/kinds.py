"""The types of settings: how each is read, shown and named. Pure.

`settings.py` declares the settings with these; nothing else reads operators' texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Union

from cowpreload.units import format_seconds, format_size, parse_size

# Evaluated at import, and Debian 12's PyPy, which the bench runs, is a Python 3.9.
RawValue = Union[str, int, float, bool, Sequence[str], None]  # noqa: UP007


@dataclass(frozen=True)
class Kind:
    """How a type of setting is read and shown."""

    name: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]


@dataclass(frozen=True)
class Declared:
    """One setting as every surface needs it."""

    attribute: str
    kind: Kind
    default: Any
    help: str
    why: str
    minimum: float | None
    choices: tuple[str, ...]

    @property
    def key(self) -> str:
        """The name in logs and errors: `max-private`."""
        return self.attribute.replace("_", "-")

    @property
    def option(self) -> str:
        """The name on a command line and in an ini: `cow-max-private`."""
        return f"cow-{self.key}"

    @property
    def variable(self) -> str:
        """The name in gunicorn.conf.py: `cow_max_private`."""
        return f"cow_{self.attribute}"

    @property
    def environment(self) -> str:
        """The name in the environment: `COW_MAX_PRIVATE`."""
        return f"COW_{self.attribute.upper()}"

    @property
    def repeatable(self) -> bool:
        """Whether it may be given more than once."""
        return self.kind is PATHS

    @property
    def shown_default(self) -> str:
        """The default as an operator would write it, or `unset`."""
        return self.show(self.default)

    def show(self, value: Any) -> str:
        """`value` as an operator would write it, or `unset`."""
        return "unset" if value is None or value == () else self.kind.show(value)

    def parse(self, text: str) -> Any:
        """Read one text.

        Raises:
            ValueError: `<rule>; <what to do>`, to follow `<setting>=<value>: `.
        """
        if text.strip() == "":
            raise ValueError("is empty; give a value or leave the setting out")
        value = self.kind.parse(text)
        if self.minimum is not None and value < self.minimum:
            raise ValueError(
                f"is too low; the least is {self.minimum:g}, "
                f"the default {self.shown_default}"
            )
        if isinstance(value, (int, float)) and self.kind is not SIZE and value > MOST:
            raise ValueError(f"is too high; the most is {MOST}")
        if self.choices and value not in self.choices:
            raise ValueError(f"is not known; write {' or '.join(self.choices)}")
        return value

    def texts(self, raw: RawValue) -> list[str]:
        """The texts in one raw value; gunicorn.conf.py may hold numbers and lists."""
        if isinstance(raw, bool) and set(self.choices) == {"on", "off"}:
            return ["on" if raw else "off"]
        if isinstance(raw, (list, tuple)):
            return [str(each) for each in raw]
        text = str(raw)
        if self.repeatable and "," in text:
            return [part.strip() for part in text.split(",")]
        return [text]


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is no whole number; write one, as in 3") from None


def _seconds(text: str) -> float:
    stripped = text.strip().removesuffix("s")
    try:
        value = float(stripped)
    except ValueError:
        raise ValueError("is no number of seconds; write one, as in 2.5") from None
    if not math.isfinite(value):
        raise ValueError("is no number of seconds; write one, as in 2.5")
    return value


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"does not begin with a slash; write /{text}")
    return text


MOST: Final = 1_000_000_000  # a count or seconds that the native core can hold
SIZE: Final = Kind("size", parse_size, format_size)
COUNT: Final = Kind("count", _count, str)
SECONDS: Final = Kind("seconds", _seconds, format_seconds)
CHOICE: Final = Kind("choice", str.lower, str)
TEXT: Final = Kind("text", str, str)
PATHS: Final = Kind("path", _path, ",".join)
