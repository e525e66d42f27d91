"""gunicorn's log, for what runs unasked: saying something must not end the server.

A handler of the user's may raise. gunicorn's own lines end a worker or the master then;
ours do not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any


class Unfailing:
    """The methods of a log; what they raise is dropped, as the line is."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Callable[..., None]:
        method = getattr(self._log, name)

        def say(*arguments: Any, **named: Any) -> None:
            with contextlib.suppress(Exception):
                method(*arguments, **named)

        return say
