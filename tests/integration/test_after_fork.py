"""after_fork: once in each worker, before its first request, respawned ones too."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from conftest import Servers, ready
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


FAILED = "after_fork callback failed: the worker ends"


def test_a_callback_that_raises_later_ends_no_running_gunicorn(
    servers: Servers, tmp_path: Path
) -> None:
    """A database is away while a worker is replaced: the other one serves on."""
    down = tmp_path / "down"
    server = servers.on("sync", app="around_fork", environ={"AFTER_FORK": str(down)})
    pid, _ = answer(ready(server, 2))
    down.touch()
    begin = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: server.log.count(FAILED) >= 2, 20, "a second attempt")
    # Each attempt waits a second before it leaves: no storm of forks.
    assert time.monotonic() - begin >= 1
    assert "ZeroDivisionError: no poller" in server.log
    assert server.process.poll() is None
    assert answer(server)[0] != pid
    down.unlink()
    ready(server, 2)


def test_a_callback_that_raises_without_a_board_ends_no_running_gunicorn(
    servers: Servers, tmp_path: Path
) -> None:
    """A reload to our class without the hook: nothing says who has served before."""
    down = tmp_path / "down"
    environ = {"COWPRELOAD_STARTUP": "0", "AFTER_FORK": str(down)}
    environ["CONF"] = "worker_class = 'sync'; preload_app = True"
    server = servers.gunicorn("-c", "changing.py", app="around_fork", environ=environ)
    server.wait_serving()
    down.touch()
    server.log_path.with_name("conf").write_text(
        "worker_class = 'cowpreload.hosts.gunicorn.CowWorker'; preload_app = True"
    )
    server.signal(signal.SIGHUP)
    server.wait_log(FAILED)
    down.unlink()
    wait_until(lambda: server.workers(), 20, "a worker")
    server.wait_serving()


UNWATCHED = """
import cowpreload
import uwsgi
from cowpreload import watch
from cowpreload.hosts.uwsgi import _state
from cowpreload.records import Limits

def have_a_watching_thread_already():
    slot = uwsgi.worker_id()
    if slot:
        KEPT.append(watch.Watch(_state.board, slot, Limits(), watch.Host()))

KEPT = []
uwsgi.post_fork_hook = have_a_watching_thread_already

@cowpreload.after_fork
def raise_later():
    if _state.board.view(1).generation > 1:
        raise ZeroDivisionError("no poller")

def application(environ, start_response):
    start_response("200 OK", [])
    return [b"ok"]
"""


def test_a_callback_ends_no_server_that_has_served_without_watching_threads(
    servers: Servers, tmp_path: Path
) -> None:
    """No worker had become ready within its limits, so it seemed to be starting."""
    (tmp_path / "unwatched.py").write_text(UNWATCHED)
    ini = {"pythonpath": str(tmp_path), "processes": "1"}
    server = servers.uwsgi(ini, app="unwatched").wait_serving()
    server.wait_log("cow: worker=1 not watched")
    (pid,) = server.workers()
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
