"""Our settings out of Celery's configuration, and what is to be said of its own.

Takes app.conf; gives Settings. The names are those of gunicorn.conf.py
(`cow_max_private`), with the application's namespace before them if it has one
(`CELERY_COW_MAX_PRIVATE` in Django's settings).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from celery.exceptions import ImproperlyConfigured

from cowpreload.errors import SettingsError
from cowpreload.immortal import WHY_NOT
from cowpreload.kinds import CELERY
from cowpreload.settings import DECLARED, Settings, declared_on
from cowpreload.settings_given import read, unknown_faults, unknown_variables


def _ours(conf: Any) -> dict[str, Any]:
    """What begins with our prefix, by the name without the namespace."""
    namespace = (getattr(conf, "prefix", "") or "").lower()
    found = {}
    for key in conf:
        name = str(key).lower().removeprefix(namespace)
        if name.startswith("cow_"):
            found[name] = conf[key]
    return found


def _environ() -> Mapping[str, str]:
    """Web server and worker may have one environment: COW_WARMUP is not for us."""
    others = {each.environment for each in DECLARED if CELERY not in each.hosts}
    return {key: value for key, value in os.environ.items() if key not in others}


def settings_of(conf: Any) -> Settings:
    """Read our settings.

    Raises:
        ImproperlyConfigured: with every fault.
    """
    named = _ours(conf)
    faults = unknown_faults(list(named), CELERY) + unknown_variables()[0]
    given = {each.attribute: named.get(each.variable) for each in declared_on(CELERY)}
    try:
        return read(given, _environ(), faults=faults, immortal_why_not=WHY_NOT)
    except SettingsError as error:
        text = "the cow settings are refused:\n  " + "\n  ".join(error.faults)
        raise ImproperlyConfigured(text) from None


def notes(conf: Any, settings: Settings) -> list[str]:
    """A line on each setting of Celery's that does not do what it seems to."""
    lines = [note] if (note := unknown_variables()[1]) else []
    theirs = conf.worker_max_memory_per_child
    if theirs:
        lines.append(
            f"cow: worker_max_memory_per_child={theirs}: counts the memory that "
            "children share as each one's own; leave it out and set cow_max_private"
        )
    return lines
