"""gunicorn's master and its event log: opened at the start, changed by a reload.

The start is refused where the file cannot be opened; a reload is not: the server runs.
"""

from __future__ import annotations

from typing import Any

from gunicorn import __version__

from cowpreload import healing
from cowpreload.event_log import EVENT_LOG, fault, tell
from cowpreload.kinds import GUNICORN
from cowpreload.lifecycle import Changed, Start
from cowpreload.settings import Settings

_opened: dict[str, str | None] = {"path": None}


def _open(settings: Settings, log: Any) -> str:
    """Open what the settings name; the fault, or ""."""
    path = settings.event_log
    if path == _opened["path"]:
        return ""
    try:
        if path is None:
            EVENT_LOG.close()
        else:
            EVENT_LOG.open(path, log.error)
    except OSError as error:
        return fault(str(path), error)
    _opened["path"] = path
    return ""


def begin(settings: Settings, log: Any) -> None:
    """Open it, and say the settings. gunicorn's master keeps its privileges.

    Raises:
        RuntimeError: it cannot be opened.
    """
    refused = _open(settings, log)
    if refused:
        raise RuntimeError(f"the cow settings are refused:\n  {refused}")
    tell(Start(settings, GUNICORN, __version__), log.info)


def changed(settings: Settings, log: Any, immortal: bool) -> None:
    """A reload has other settings; `immortal`: whether the heap is since the start."""
    refused = _open(settings, log)
    if refused:
        log.error("cow: reload keeps the event log it had; %s", refused)
    tell(Changed(settings, GUNICORN), log.info)
    if settings.merge == "self" and not healing.begun():
        log.warning("cow: merge=self: no effect: it acts from the next start on")
    if immortal and settings.exit == "normal":
        log.warning(
            "cow: exit=normal: the heap is immortal since the start; "
            "workers leave fast until the next one"
        )
