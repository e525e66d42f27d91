"""Start one way: a server of the user's application on a free port of 127.0.0.1.

Takes a plan and a way; gives a running server, which may not serve yet and which the
hall ends. Environment and working directory are the user's.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from cowpreload.bench.hall import Hall
from cowpreload.bench.observe import wait_quiet
from cowpreload.bench.server import Server, free_port, gunicorn, script
from cowpreload.tryout.own_config import (
    arguments,
    gunicorn_file,
    uwsgi_file,
    uwsgi_lines,
)
from cowpreload.tryout.records import Plan, Way

START = 300.0  # seconds that a server may take to serve
REST = 10.0  # seconds that are waited for it to come to rest
# A limit acts at the first reading over it: stricter than where it will be used.
_STRICT = {"COW_STRIKES": "1", "COW_MIN_LIFETIME": "0", "COW_JITTER": "0"}
# An empty variable is unset: these are files of the server that runs.
ENVIRON = {"COW_EVENT_LOG": "", "COW_WARMUP_FILE": ""}


def start(hall: Hall, plan: Plan, way: Way, workers: int, limit: int = 0) -> Server:
    """One server; `limit`, in bytes, is cow-max-private of a cow way."""
    environ = {"HOME": os.environ.get("HOME", "/"), **ENVIRON}
    if limit and way.cow:
        environ |= _STRICT
    begin = _gunicorn if way.host == "gunicorn" else _uwsgi
    return hall.add(begin(hall, plan, way, workers, limit, environ))


def wait_serving(server: Server, plan: Plan, workers: int) -> None:
    """Return when all workers are there and have loaded what they load.

    Raises:
        RuntimeError: it has ended; the text has its log.
        TimeoutError: it does not answer.
    """
    path = plan.paths[0]
    server.wait_serving(path, workers=workers, seconds=START, status=None)
    with contextlib.suppress(TimeoutError):  # an application may work by itself
        wait_quiet(server, REST)


def _gunicorn(
    hall: Hall, plan: Plan, way: Way, workers: int, limit: int, environ: dict[str, str]
) -> Server:
    values: dict[str, object] = {"workers": workers}
    if way.cow:
        values["cow_warmup"] = list(plan.warmup)
    if way.cow and limit:
        values["cow_max_private"] = str(limit)
    log = hall.log()
    config = log.with_suffix(".conf.py")
    config.write_text(gunicorn_file(plan, way, values))
    kept = arguments(os.environ.get("GUNICORN_CMD_ARGS", ""))
    return gunicorn(
        ["--config", str(config), "--workers", str(workers), plan.app],
        hall.site.path,
        log,
        {**environ, "GUNICORN_CMD_ARGS": kept},
    )


def _uwsgi(
    hall: Hall, plan: Plan, way: Way, workers: int, limit: int, environ: dict[str, str]
) -> Server:
    values: list[tuple[str, str]] = []
    if way.cow:
        values += [("plugins-dir", str(hall.plugins())), ("need-plugin", "cow")]
        values += [("cow-warmup", each) for each in plan.warmup]
    if way.cow and limit:
        values += [("cow-max-private", str(limit))]
    ini, log, port = Path(plan.ini), hall.log(), free_port()
    lines = uwsgi_lines(ini.read_text(), str(ini.resolve().parent), way.cow)
    path = log.with_suffix(".ini")
    path.write_text(uwsgi_file(lines, port, workers, values))
    return Server([script("uwsgi"), str(path)], port, hall.site.path, log, environ)
