"""The types of settings: how each is read, shown and named. Pure.

`settings.py` declares the settings with these; nothing else reads operators' texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Union
from urllib.parse import urlsplit

from cowpreload import budget
from cowpreload.units import format_seconds, format_size, parse_size

# Evaluated at import, and Debian 12's PyPy, which the bench runs, is a Python 3.9.
RawValue = Union[str, int, float, bool, Sequence[str], type, None]  # noqa: UP007


@dataclass(frozen=True)
class Kind:
    """How a type of setting is read and shown.

    Attributes:
        separator: a regular expression that parts the values in one text of a setting
            that may be given more than once; "" for all others.
        hide: what of a bad text may be shown; None is all of it.
    """

    name: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    separator: str = ""
    hide: Callable[[str], str] | None = None


GUNICORN: Final = "gunicorn"
UWSGI: Final = "uwsgi"
CELERY: Final = "celery"
WEB: Final = (GUNICORN, UWSGI)
ALL: Final = (*WEB, CELERY)


@dataclass(frozen=True)
class Declared:
    """One setting as every surface needs it; it exists on `hosts` alone."""

    attribute: str
    kind: Kind
    default: Any
    help: str
    why: str
    minimum: float | None
    choices: tuple[str, ...]
    hosts: tuple[str, ...] = ALL

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
        """The name in gunicorn.conf.py and on Celery's app.conf: `cow_max_private`."""
        return f"cow_{self.attribute}"

    @property
    def environment(self) -> str:
        """The name in the environment: `COW_MAX_PRIVATE`."""
        return f"COW_{self.attribute.upper()}"

    @property
    def repeatable(self) -> bool:
        """Whether it may be given more than once."""
        return bool(self.kind.separator)

    @property
    def shown_default(self) -> str:
        """The default as an operator would write it, or `unset`."""
        return self.show(self.default)

    def show(self, value: Any) -> str:
        """`value` as an operator would write it, or `unset`."""
        return "unset" if value is None or value == () else self.kind.show(value)

    def show_text(self, text: str) -> str:
        """`text` as it was given, without what may be a secret."""
        return self.kind.hide(text) if self.kind.hide else text

    def hidden(self, raw: RawValue) -> RawValue:
        """`raw`, or what reads the same and shows nothing, if it may be a secret."""
        if self.kind.hide is None:
            return raw
        if isinstance(raw, (list, tuple)):
            return [Hidden(_text(each)) for each in raw]
        return Hidden(_text(raw)) if isinstance(raw, str) else raw

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
        """The texts in one raw value; a gunicorn.conf.py may hold lists and classes.

        Nothing parts what is in a list: that is how a separator gets into a value.
        """
        if isinstance(raw, bool) and set(self.choices) == {"on", "off"}:
            return ["on" if raw else "off"]
        if isinstance(raw, type):
            return [f"{raw.__module__}.{raw.__qualname__}"]
        if isinstance(raw, (list, tuple)):
            return [_text(each) for each in raw]
        text = _text(raw)
        if self.repeatable and text.strip():
            return [part.strip() for part in re.split(self.kind.separator, text)]
        return [text]


def setting(
    kind: Kind,
    default: Any,
    help: str,
    *,
    why: str,
    minimum: float | None = None,
    choices: tuple[str, ...] = (),
    hosts: tuple[str, ...] = ALL,
) -> Any:
    """A field of Settings, from which a Declared is made."""
    return field(
        default=default,
        repr=kind.hide is None,  # reporters of errors keep the locals of each frame
        metadata={
            "kind": kind,
            "help": help,
            "why": why,
            "minimum": minimum,
            "choices": choices,
            "hosts": hosts,
        },
    )


web_setting = partial(setting, hosts=WEB)
"""As `setting`. Celery has no pages; it loads tasks and ends its children by itself."""


class Hidden(str):
    """A raw value that a host's own dump or help must not show."""

    def __repr__(self) -> str:
        return "'...'"

    def __str__(self) -> str:
        return "..."

    def __format__(self, spec: str) -> str:
        return "..."


def _text(raw: object) -> str:
    """What was given, of a Hidden too."""
    return str.__str__(raw) if isinstance(raw, str) else str(raw)


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


def _page(text: str) -> str:
    return AUTO if text.strip() == AUTO else _path(text)


def _path(text: str) -> str:
    if text.startswith("/"):
        return text
    try:
        url = urlsplit(text)
    except ValueError:  # such as a bracket that is not closed
        url = urlsplit("")
    if not (url.scheme and url.netloc):
        raise ValueError(f"does not begin with a slash; write /{text}")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    raise ValueError(f"is a URL; write {path}, with warmup-host={url.netloc}")


_TOKEN = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z-]+")
_SET_BY_US = {
    "host": "set warmup-host",
    "content-length": "leave it out, the requests have no body",
    "transfer-encoding": "leave it out, the requests have no body",
}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon:
        raise ValueError("has no colon; write Name: value")
    if "_" in name:
        better = name.replace("_", "-")
        raise ValueError(f"servers drop a name with an underscore; write {better}: ...")
    if not _TOKEN.fullmatch(name):
        raise ValueError("the name is no header's; write Name: value")
    if name.lower() in _SET_BY_US:
        raise ValueError(f"is not for headers; {_SET_BY_US[name.lower()]}")
    if not value:
        raise ValueError("the value is empty; write Name: value")
    if not all(" " <= each <= "\xff" and each != "\x7f" for each in value):
        raise ValueError("the value holds what no header can; write printable Latin-1")
    return name, value


def _header_names(headers: Sequence[tuple[str, str]]) -> str:
    """The names alone: values are cookies and tokens."""
    return ",".join(name for name, _ in headers)


def _hide_value(text: str) -> str:
    name, colon, _ = text.partition(":")
    return f"{name.strip()}:..." if colon and _TOKEN.fullmatch(name.strip()) else "..."


AUTO: Final = "auto"  # as a warm-up path: whatever is found and tried
MOST: Final = 1_000_000_000  # a count or seconds that the native core can hold
SIZE: Final = Kind("size", parse_size, format_size)
BUDGET: Final = Kind("size or percent", budget.parse, budget.show)
COUNT: Final = Kind("count", _count, str)
SECONDS: Final = Kind("seconds", _seconds, format_seconds)
CHOICE: Final = Kind("choice", str.lower, str)
TEXT: Final = Kind("text", str, str)
# A query may hold commas; what comes after the comma of a list is another path.
PATHS: Final = Kind("path", _path, ",".join, separator=r",\s*(?=/)")
PAGES: Final = Kind("path", _page, ",".join, separator=rf",\s*(?=/|{AUTO}\s*(?:,|$))")
HEADERS: Final = Kind(
    "header", _header, _header_names, separator=r"\r?\n", hide=_hide_value
)
