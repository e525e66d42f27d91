"""The user's own configuration of a server, made to serve one way on one port.

Takes a gunicorn.conf.py or an ini of uWSGI; gives what this run needs of it: what the
user has set holds, but for where the server listens and writes, how it is told to go
to the background, and what makes the way. Must not start anything. `settings` is
called by gunicorn itself, in the configuration file that `gunicorn_file` writes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cowpreload.errors import NotFoundError
from cowpreload.tryout.records import Plan, Way

# What gunicorn is told of these by a file acts outside this run.
_OUTSIDE: dict[str, object] = {
    "daemon": False,
    "pidfile": None,
    "accesslog": None,
    "errorlog": "-",
    "logconfig": None,
    "logconfig_dict": {},
    "logconfig_json": None,
    "syslog": False,
    "reload": False,
    "statsd_host": None,
    "control_socket_disable": True,
    "keyfile": None,
    "certfile": None,
    "umask": 0,
    "user": None,
    "group": None,
}
# Files of the server that runs: its events, and what it warms at the next start.
_WRITTEN = ("cow_event_log", "cow_warmup_file")
_PLAIN_OF = {"cow_gevent": "gevent", "cow_asgi": "asgi"}
_UVICORN = ("uvicorn_worker.UvicornWorker", "uvicorn.workers.UvicornWorker")
_COW_OF = {
    "sync": "cow",
    "gthread": "cow",
    "gevent": "cow_gevent",
    "asgi": "cow_asgi",
    **dict.fromkeys(_UVICORN, "cow_uvicorn"),
}


# The same on a command line: those with a value, and those without.
_OUTSIDE_VALUES = frozenset(
    """
    -b --bind -g --group -m --umask -p --pid -u --user --access-logfile --certfile
    --control-socket --cow-event-log --cow-warmup-file --error-logfile --keyfile
    --log-config --log-config-json --log-file --log-syslog-to --statsd-host
    """.split()  # noqa: SIM905 - as below
)
_OUTSIDE_FLAGS = ("--preload", "--daemon", "-D", "--reload", "--log-syslog")


def arguments(text: str) -> str:
    """What holds of GUNICORN_CMD_ARGS, which wins over a configuration file."""
    kept: list[str] = []
    given = iter(shlex.split(text))
    for each in given:
        name, is_one, _ = each.partition("=")
        if each in _OUTSIDE_FLAGS:
            continue
        # gunicorn takes the beginning of a name for it, where no other has the same.
        shortened = name.startswith("--") and any(
            full.startswith(name) for full in _OUTSIDE_VALUES
        )
        if name not in _OUTSIDE_VALUES and not shortened:
            kept.append(each)
        elif not is_one:
            next(given, None)
    return shlex.join(kept)


def settings(path: str, cow: bool, preload: bool, plain: str) -> dict[str, Any]:
    """gunicorn's settings, as names of a configuration file.

    Args:
        path: the user's file, or "".
        plain: the worker class where we are not, or "": that of the file.
    """
    space = _run(path)
    theirs = plain or _theirs(space)
    found = {
        name: value
        for name, value in space.items()
        if not name.startswith("__") and (cow or not name.startswith("cow_"))
    }
    for name in _WRITTEN:
        found.pop(name, None)
    found |= {**_OUTSIDE, "preload_app": preload, "worker_class": theirs}
    return found | _cow(theirs) if cow else found


def _run(path: str) -> dict[str, Any]:
    """The names of the user's file; none of "" ."""
    space: dict[str, Any] = {"__file__": path, "__name__": "__config__"}
    if path:
        exec(compile(Path(path).read_bytes(), path, "exec"), space)
    return space


def _theirs(space: dict[str, Any]) -> Any:
    """The worker class of a file; of ours, the one that runs under it."""
    theirs = space.get("worker_class") or "sync"
    if theirs == "cow_uvicorn":
        return asgi_class()
    if theirs == "cow":
        return space.get("cow_worker") or "sync"
    return _PLAIN_OF.get(theirs, theirs) if isinstance(theirs, str) else theirs


def skipped(path: str) -> tuple[str, ...]:
    """cow-warmup-skip, of the environment and of the user's file: not to be requested.

    Commas separate several in a variable, as for a server.
    """
    found = _run(path).get("cow_warmup_skip") or []
    listed = [found] if isinstance(found, str) else list(found)
    given = os.environ.get("COW_WARMUP_SKIP", "").split(",")
    return tuple(each.strip() for each in (*given, *listed) if each.strip())


def _cow(theirs: Any) -> dict[str, Any]:
    """The settings that put ours in the place of the class `theirs`."""
    ours = _COW_OF.get(theirs) if isinstance(theirs, str) else None
    return (
        {"worker_class": ours}
        if ours
        else {
            "worker_class": "cow",
            "cow_worker": theirs,
        }
    )


def classes(
    path: str, given: str, asgi: bool
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The plain worker class for an application, and the lines that make it ours.

    Args:
        path: the user's gunicorn.conf.py, or "".
        given: the class that the user named, or "".
    """
    space = _run(path)
    named = given or ("worker_class" in space and _theirs(space))
    theirs = named or (asgi_class() if asgi else "sync")
    lines = tuple((name, str(value)) for name, value in _cow(theirs).items())
    return theirs if isinstance(theirs, str) else "", lines


def gunicorn_file(plan: Plan, way: Way, values: dict[str, object]) -> str:
    """The text of the configuration file for one way; `values` win over the user's."""
    arguments = (plan.config, way.cow, way.preload, plan.worker_class)
    return (
        "# Made by `cowpreload try`.\n"
        "from cowpreload.tryout.own_config import settings\n\n"
        f"globals().update(settings{arguments!r})\n"
        f"globals().update({values!r})\n"
    )


def asgi_class() -> str:
    """How plain gunicorn users serve ASGI: uvicorn's worker, else gunicorn's own.

    Raises:
        NotFoundError: neither is installed.
    """
    from importlib.util import find_spec

    for each in _UVICORN:
        if find_spec("uvicorn") and find_spec(each.partition(".")[0]):
            return each
    if find_spec("gunicorn.workers.gasgi"):
        return "asgi"
    raise NotFoundError(
        "app: is ASGI, which needs a worker class for it; "
        "pip install 'cowpreload[uvicorn]'"
    )


# ---- uWSGI ----------------------------------------------------------------------

# Where the server listens and writes, who it is, and what this run sets itself.
_DROPPED = frozenset(
    """
    cheaper cheaper-algo cheaper-initial daemonize daemonize2 die-on-term
    disable-logging emperor fastcgi-socket gid http http-processes http-socket
    http11-socket https https-socket log-master logger logto logto2 master master-fifo
    need-app p pidfile pidfile2 processes safe-pidfile safe-pidfile2 shared-socket
    socket stats stats-server touch-reload uid uwsgi-socket vacuum workers
    """.split()  # noqa: SIM905 - forty lines of a list would say the same
)
_NOT_WITH_COW = ("lazy", "lazy-apps")


def uwsgi_lines(text: str, folder: str, cow: bool) -> list[str]:
    """The lines of an ini that hold in this run.

    Args:
        folder: that of the ini: what %d stands for.
    """
    kept = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in ";#[":
            continue
        key = stripped.partition("=")[0].strip()
        value = stripped.partition("=")[2].strip()
        if key in _DROPPED or key.startswith("cow-"):
            continue
        if key in ("plugin", "plugins", "need-plugin") and "cow" in value.split(","):
            continue
        if cow and key in _NOT_WITH_COW:
            continue
        kept.append(stripped.replace("%d", f"{folder.rstrip('/')}/"))
    return kept


def uwsgi_file(
    lines: Sequence[str], port: int, workers: int, values: Sequence[tuple[str, str]]
) -> str:
    """The text of an ini for one way: the user's lines, then ours."""
    ours = [
        ("http-socket", f"127.0.0.1:{port}"),
        ("processes", str(workers)),
        ("master", "true"),
        ("die-on-term", "true"),
        ("disable-logging", "true"),
        ("need-app", "true"),
    ]
    load = [each for each in values if each[0] in ("plugins-dir", "need-plugin")]
    rest = [each for each in values if each not in load]
    made = ["[uwsgi]", *(f"{key} = {value}" for key, value in load), *lines]
    made += [f"{key} = {value}" for key, value in (*ours, *rest)]
    return "\n".join(made) + "\n"
