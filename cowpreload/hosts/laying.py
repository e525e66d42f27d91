"""Hot code, on each host: laid between the collection and the walk of the freeze.

Takes the settings, and what else is to look at the heap then; gives a HotReport and
what was filled for it. Must not raise: `freeze` would call that a fault of the look.
"""

from __future__ import annotations

from collections.abc import Callable

from cowpreload import hot_code
from cowpreload.records import HotReport, SealReport
from cowpreload.sealing import seal
from cowpreload.settings import Settings


def _why_unlaid(settings: Settings) -> str:
    """Which other setting leaves hot code where it is, and why; "" if none does."""
    if settings.freeze == "off":
        return "freeze=off: hot code is laid right before it"
    if settings.seal == "off":
        return "seal=off: hot code is laid behind the holes that it fills"
    return ""


class Laying:
    """The stage as the settings want it, and what it gave.

    Attributes:
        report: what was laid.
        filled: the holes that were filled before, as a part of the seal.
    """

    def __init__(self, settings: Settings, look: Callable[[], None]) -> None:
        wanted = settings.hot_code == "on"
        why_not = _why_unlaid(settings) if wanted else ""
        self._wanted = wanted and not why_not
        self._look = look
        self.report = HotReport(why_not=why_not)
        self.filled = SealReport()

    def begin(self) -> None:
        """The application is loaded; what runs from here on is hot."""
        if self._wanted:
            hot_code.begin()

    def look(self) -> None:
        """The heap is collected, and the collector lists all of it."""
        if self._wanted:
            self.report = hot_code.lay(self._fill)
        self._look()

    def _fill(self) -> bool:
        self.filled = seal()
        return not self.filled.unsealed
