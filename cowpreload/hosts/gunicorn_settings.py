"""What gunicorn's configuration tells of our settings, beside their values.

Takes a configuration; gives names that its file sets, and lines on what has no effect.
"""

from __future__ import annotations

import sys
from typing import Any

from cowpreload.kinds import GUNICORN
from cowpreload.settings import declared_on


def config_file_names(cfg: Any) -> list[str]:
    """The names that a configuration file sets; gunicorn ignores unknown ones."""
    location = str(cfg.settings["config"].get() or "")
    name = location[7:] if location.startswith("python:") else "__config__"
    return list(vars(sys.modules[name])) if name in sys.modules else []


def _is_other(cfg: Any) -> bool:
    """Whether workers are of another class than the sync one."""
    worker = cfg.settings.get("cow_worker")
    return cfg.worker_class_str != "cow" or bool(worker and worker.get())


def without_effect(cfg: Any) -> list[str]:
    """Lines on our variables in raw_env, which gunicorn sets after `configure`, and on
    reload."""
    lines = []
    names = [
        each.environment
        for each in declared_on(GUNICORN)
        if each.variable in cfg.settings and each.environment in cfg.env
    ]
    if names:
        lines.append(
            f"cow: raw_env: {', '.join(names)}: no effect, set after the settings are "
            "read; use the option, the configuration file or the environment"
        )
    merge = cfg.settings.get("cow_merge")
    if merge and merge.get() == "self" and (cfg.threads > 1 or _is_other(cfg)):
        lines.append(
            "cow: merge=self: no effect: it needs the sync worker, of one thread; "
            "merge=kernel acts on any"
        )
    if cfg.reload:
        lines.append(
            "cow: reload=True: preloaded code does not reload; "
            "use the sync worker in development"
        )
    return lines
