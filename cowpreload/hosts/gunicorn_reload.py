"""Which worker class a running gunicorn takes from a reload: none that changes sides.

Our classes need a heap that was loaded, warmed up and frozen before the first fork;
gunicorn's own would finalize, at the end of each worker, a heap that has become
immortal. A server that runs keeps the class it has and says why; it is never ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.gunicorn_signals import running_arbiter

# What names the class, as the server runs with it.
_running: dict[str, Any] = {"worker_class": None, "cow_worker": None}


def _naming(cfg: Any) -> dict[str, Any]:
    return {
        name: cfg.settings[name].get() if name in cfg.settings else None
        for name in _running
    }


def _is_ours(worker_class: Any) -> bool:
    return hasattr(worker_class, "cow_configure")


def _why_not(cfg: Any, runs: Any, find: Callable[[Any], Any]) -> str:
    """Why the class that `cfg` names must wait for a start, or "".

    Raises:
        RuntimeError: there is no such class, and this has nothing to do with us.
    """
    name = cfg.settings["worker_class"].get()
    try:
        wanted = find(cfg)
    except RuntimeError as error:
        if not _is_ours(runs) and not str(name).startswith("cow"):
            raise
        return str(error)
    changed = [
        f"{name}={'unset' if value is None else value}"
        for name, value in _naming(cfg).items()
        if value != _running[name]
    ]
    if not changed or not (_is_ours(wanted) or _is_ours(runs)):
        return ""
    return (
        f"{', '.join(changed)}: this server runs {runs.__name__}, chosen before its "
        "first fork; start it anew, or replace it by USR2 and TERM"
    )


def resolve(cfg: Any, find: Callable[[Any], Any]) -> Any:
    """The class that gunicorn is to use: what `find(cfg)` gives, or the running one.

    Raises:
        RuntimeError: what `find` raises, where no server of ours would end by it.
    """
    arbiter = running_arbiter()
    why_not = _why_not(cfg, arbiter.worker_class, find) if arbiter else ""
    if why_not:
        Unfailing(arbiter.log).error(
            "cow: reload keeps the worker class it had; %s", why_not
        )
        for name, value in _running.items():
            if name in cfg.settings:
                cfg.settings[name].value = value
    _running.update(_naming(cfg))
    return find(cfg)
