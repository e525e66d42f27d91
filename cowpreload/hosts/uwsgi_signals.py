"""What is sent to uWSGI's master while pages are requested that nobody has listed.

uWSGI ignores SIGTERM, SIGQUIT and SIGHUP until its master serves; while it loads, that
is as without us. Here it would last longer: they are kept, what can be left out is left
out, and plugin/plugin.c sends one again when handlers are set. Main interpreter and
thread only.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

_KEPT = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


class Waiting:
    """The signal that came meanwhile."""

    def __init__(self) -> None:
        self._number = 0

    def _keep(self, number: int, frame: FrameType | None) -> None:
        # One that ends the server wins over a reload.
        if self._number in (0, signal.SIGHUP):
            self._number = number

    def waits(self) -> bool:
        """Whether one came: then pages stay cold."""
        return self._number != 0

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep them; then they do again what they did before."""
        before: dict[int, Any] = {}
        try:
            for number in _KEPT:
                before[number] = signal.signal(number, self._keep)
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, signal.SIG_IGN if handler is None else handler)

    def take(self) -> int:
        """The one that waits, or 0; once."""
        found, self._number = self._number, 0
        return found


WAITING = Waiting()
