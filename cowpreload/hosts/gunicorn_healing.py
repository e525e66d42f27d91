"""gunicorn's sync worker between two requests, and while it waits: heal.

Must not raise, and say once why it cannot.
"""

from __future__ import annotations

from typing import Any

from cowpreload import healing
from cowpreload.hosts.gunicorn_log import Unfailing

# gunicorn waits up to its timeout, 30 s; copies of the last request can be healed
# sooner.
_WAIT_SECONDS = 1.0


class HealMixin:
    """Heals where the loop of SyncWorker is between two requests."""

    log: Any
    _cow_settings: Any

    def notify(self) -> None:
        """Between two requests."""
        super().notify()  # type: ignore[misc]
        self._cow_heal(idle=False)

    def wait(self, timeout: float) -> Any:
        """No request waits."""
        if self._cow_settings.merge == "self":
            self._cow_heal(idle=True)
            timeout = min(timeout, _WAIT_SECONDS)
        return super().wait(timeout)  # type: ignore[misc]

    def _cow_heal(self, *, idle: bool) -> None:
        if self._cow_settings.merge != "self":
            return
        report = healing.turn(idle)
        if report is not None and report.refused:
            Unfailing(self.log).warning(
                "cow: merge=self: nothing is given back: %s", report.refused
            )
