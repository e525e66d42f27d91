"""after_fork: once in each worker, before its first request, respawned ones too."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from conftest import Servers
from harness.processes import alive, wait_until
from harness.server import Server


def answer(server: Server) -> tuple[int, list[list[object]]]:
    """The pid that answers and what its callbacks saw."""
    found = json.loads(server.get("/")[1])
    return found["pid"], found["seen"]


@pytest.mark.parametrize("host", ["sync", "threaded", "asgi", "uwsgi"])
def test_each_worker_runs_its_callbacks_once_a_respawned_one_too(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, {"cow-warmup": "/"}, workers=1, app="around_fork")
    server.wait_serving()
    pid, seen = answer(server)
    assert seen == [["first", pid, 1], ["second", pid, 1]]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), 10, "the worker to be gone")
    server.wait_serving()
    wait_until(lambda: answer(server)[0] != pid, 20, "the next worker")
    pid, seen = answer(server)
    assert seen == [["first", pid, 1], ["second", pid, 1]]


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_callback_that_raises_ends_the_start_with_its_traceback(
    servers: Servers, host: str
) -> None:
    environ = {"AFTER_FORK": "raise"}
    # One worker: gunicorn itself ends with 1 when two of them fail to boot.
    server = servers.on(host, workers=1, app="around_fork", environ=environ)
    assert server.wait_exit() == (22 if host == "uwsgi" else 3)
    assert "ZeroDivisionError: no poller" in server.log
    if host == "uwsgi":
        assert "after_fork callback failed: the start ends" in server.log


def test_uwsgi_says_each_time_why_a_later_worker_does_not_come_up(
    servers: Servers,
) -> None:
    """The server is not ended: other workers may serve, and the cause may pass."""
    server = servers.on(
        "uwsgi", workers=1, app="around_fork", environ={"AFTER_FORK": "later"}
    )
    pid, _ = answer(server.wait_serving())
    os.kill(pid, signal.SIGKILL)
    server.wait_log("after_fork callback failed: the worker ends")
    assert server.process.poll() is None


TWO_APPS = """
import os, cowpreload
SEEN = []
cowpreload.after_fork(lambda: SEEN.append(os.getpid()))
def application(environ, start_response):
    start_response("200 OK", [])
    return [f"{SEEN} {os.getpid()}".encode()]
"""


def test_further_interpreters_of_uwsgi_run_theirs(
    servers: Servers, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(TWO_APPS)
    ini = {
        "mount": ["/one=one:application", "/two=two:application"],
        "pythonpath": str(tmp_path),
        "processes": "1",
    }
    server = servers.uwsgi(ini, app=None)
    for name in ("one", "two"):
        server.wait_serving(f"/{name}")
        seen, pid = server.get(f"/{name}")[1].decode().split(" ")
        assert seen == f"[{pid}]"
