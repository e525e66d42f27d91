"""One route as every framework's reader gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Route:
    """A GET route without a parameter.

    Attributes:
        path: decoded, with its leading slash, without SCRIPT_NAME.
        names: what it and its view are called, as far as one can see.
        host: that it is bound to; "" is any.
        why_not: why it is not to be requested, if the framework says so, or "".
    """

    path: str
    names: tuple[str, ...] = ()
    host: str = ""
    why_not: str = ""

    def below(self, prefix: str) -> Route:
        """The same route where its application is mounted at `prefix`."""
        return replace(self, path=prefix + self.path)


Mounted = Callable[[str, Any], list[Route]]
"""Takes a prefix and what is mounted there; gives its routes, below the prefix."""


def names_of(*things: object) -> tuple[str, ...]:
    """The names among these: texts, functions and classes; of others, their class's."""
    found = []
    for each in things:
        named = each if isinstance(each, str) else getattr(each, "__qualname__", None)
        if named is None and each is not None:
            named = type(each).__qualname__
        if isinstance(named, str) and named:
            found.append(named.replace("<locals>", ""))
    return tuple(found)
