"""The stages on real servers: what a user relies on, on both hosts."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PYPY, QUICK, Servers, deep, ready
from harness.processes import alive, wait_until
from harness.server import Server

from cowpreload.board import open_board

HOSTS = ["sync", "threaded", "uwsgi"]
# What an interpreter does at its end by itself: PyPy frees no object then.
FINALIZED = [] if PYPY else ["finalized"]
# Worker classes that wait for requests in their own way.
LOOPS = ["asgi", "gevent", "uvicorn"]
# What is one code on all of them is asked of one of each kind here: a plain process, a
# loop of gunicorn's, a composed class, uWSGI; of the rest in deep.
EACH_KIND = ["sync", "asgi", "gevent", "uwsgi", *deep("threaded", "uvicorn")]
ALL_HOSTS = [*EACH_KIND, *deep("uwsgi-threaded")]


def me(server: Server) -> dict[str, Any]:
    """What the worker that answers says of itself."""
    found: dict[str, Any] = json.loads(server.get("/me")[1])
    return found


def notes(path: Path) -> dict[int, list[str]]:
    """What each process wrote to the exit log, in order."""
    found: dict[int, list[str]] = {}
    for line in path.read_text().splitlines():
        pid, _, text = line.partition(" ")
        found.setdefault(int(pid), []).append(text)
    return found


def exit_notes(path: Path, pid: int) -> list[str]:
    """What a process wrote but for its lifespan, which only some hosts run."""
    said = notes(path)[pid]
    return [each for each in said if not each.startswith("lifespan")]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, shared: Servers) -> Iterator[Server]:
    """Two workers of a host, for all questions that leave them as they are."""
    environ = {"HEAP_MB": "30", "EXIT_LOG": "/dev/stderr"}
    options = {**QUICK, "cow-warmup": "/me"}
    with shared.on(request.param, options, environ=environ) as started:
        yield started.wait_serving(workers=2)


on_all_hosts = pytest.mark.parametrize("server", ALL_HOSTS, indirect=True)


@pytest.mark.each_python
@on_all_hosts
def test_a_worker_knows_its_slot_and_its_memory(server: Server) -> None:
    """The heap is shared, the readings are those of the worker."""
    found = me(server)
    worker = found["worker"]
    assert worker["pid"] == found["pid"] in server.workers()
    assert worker["slot"] in (1, 2)
    assert worker["generation"] == 1
    assert worker["shared"] > 20 << 20 > worker["private"]
    server.wait_log("cow: settings max-private=unset")
    line = server.wait_log("cow: preload objects=")
    assert "warmup-requests=2 findings=0" in line


@on_all_hosts
def test_requests_are_counted_on_the_board(server: Server) -> None:
    board = open_board(server.pid)

    def counted() -> int:
        return sum(each.requests for each in board)

    before = counted()
    for _ in range(5):
        server.get("/")
    wait_until(lambda: counted() >= before + 5, 5, "count")
    wait_until(lambda: me(server)["worker"]["requests"] > 0, 5, "its own")


@on_all_hosts
def test_the_application_is_loaded_once_and_closed_before_the_fork(
    server: Server,
) -> None:
    said = re.findall(r"^(\d+) before_fork$", server.log, re.MULTILINE)
    assert said == [str(server.pid)]


@on_all_hosts
def test_nothing_of_ours_is_a_thread_of_the_master(server: Server) -> None:
    names = [
        path.read_text().strip()
        for path in Path(f"/proc/{server.pid}/task").glob("*/comm")
    ]
    assert "cow-watch" not in names
    if server.log_path.with_suffix(".ini").exists():  # uWSGI
        assert len(names) == 1
    for worker in server.workers():
        task = Path(f"/proc/{worker}/task")
        wait_until(
            lambda task=task: [
                each for each in task.glob("*/comm") if "cow-watch" in each.read_text()
            ],
            5,
            "watching thread",
        )
    python_threads = json.loads(server.get("/threads")[1])
    assert not any("cow" in name.lower() for name in python_threads)


@pytest.mark.skipif(PYPY, reason="gc.disable() is all that PyPy has")
@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("threaded")])
def test_a_librarys_gc_enable_does_not_bring_the_collector_back(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, {"cow-gc": "off"}, workers=1).wait_serving()
    assert json.loads(server.get("/gc")[1])["collections"] == 0
    server = servers.on(host, {"cow-gc": "on"}, workers=1).wait_serving()
    assert json.loads(server.get("/gc")[1])["collections"] > 0


# Each way out: what is done to a worker. The master's own end is the last of them.
def _term_idle(server: Server, worker: int) -> None:
    os.kill(worker, signal.SIGTERM)


def _hup_master(server: Server, worker: int) -> None:
    server.signal(signal.SIGHUP)


def _stop_master(server: Server, worker: int) -> None:
    server.signal(signal.SIGTERM)


def _term_busy(server: Server, worker: int) -> None:
    def hang() -> None:
        # uWSGI's SIGTERM ends a worker at once, request or not.
        with contextlib.suppress(OSError):
            server.get("/hang?s=2")

    request = threading.Thread(target=hang)
    request.start()
    time.sleep(0.5)  # no condition shows that a request is being served
    os.kill(worker, signal.SIGTERM)
    request.join()


def _grow(server: Server, worker: int) -> None:
    try:
        server.get("/grow?mb=80")
    except OSError:
        pytest.fail("the request was lost")


WAYS = {
    "term-idle": _term_idle,
    "term-busy": _term_busy,
    "hup": _hup_master,
    "recycled": _grow,
    "stop": _stop_master,
}


@pytest.mark.parametrize("host", EACH_KIND)
def test_exit_handlers_run_once_each_in_order_and_nothing_is_finalized(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    """Those of before the fork too, last registered first, on every way out."""
    log = tmp_path / "exit"
    options = {**QUICK, "cow-max-growth": "40M", "cow-warmup": "/"}
    server = servers.on(host, options, workers=1, environ={"EXIT_LOG": str(log)})
    for way, leave in WAYS.items():
        worker = me(ready(server))["pid"]
        server.get("/register")
        # gevent's loop hears of the end within a second: the thread is to live longer.
        server.get("/thread?s=1.5" if host == "gevent" else "/thread")
        leave(server, worker)
        wait_until(lambda worker=worker: not alive(worker), 20, f"{way}: its end")
        said = exit_notes(log, worker)
        assert "finalized" not in said, way
        said.remove("thread")  # a non-daemon thread was joined, whenever it ended
        assert said == ["worker", "second", "first"], way


@pytest.mark.each_python
@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("threaded")])
def test_exit_normal_finalizes_as_the_host_does(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    log = tmp_path / "exit"
    options = {"cow-exit": "normal"}
    server = servers.on(host, options, workers=1, environ={"EXIT_LOG": str(log)})
    worker = me(ready(server))["pid"]
    os.kill(worker, signal.SIGHUP if host == "uwsgi" else signal.SIGTERM)
    wait_until(lambda: not alive(worker), 20, "worker to be gone")
    assert notes(log)[worker] == ["second", "first", *FINALIZED]


def test_a_mortal_master_finalizes_as_without_us(
    servers: Servers, tmp_path: Path
) -> None:
    log = tmp_path / "exit"
    options = {"cow-immortal": "off"}
    server = servers.on("sync", options, workers=1, environ={"EXIT_LOG": str(log)})
    server.wait_serving()
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    said = notes(log)[server.pid]
    assert said == ["before_fork", "second", "first", *FINALIZED]


@pytest.mark.each_python
@pytest.mark.parametrize(
    "host", ["sync", "threaded", "asgi", "uwsgi", *deep("gevent", "uvicorn")]
)
def test_max_requests_of_the_host_leaves_our_way(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    log = tmp_path / "exit"
    options = {"max-requests": "5"}
    if host == "uwsgi":
        options["min-worker-lifetime"] = "0"
    server = servers.on(host, options, workers=1, environ={"EXIT_LOG": str(log)})
    worker = me(ready(server))["pid"]
    for _ in range(6):
        server.get("/")
    wait_until(lambda: not alive(worker), 20, "worker to be gone")
    assert exit_notes(log, worker) == ["second", "first"]


@pytest.mark.each_python
@pytest.mark.parametrize("host", ["asgi", "uvicorn"])
def test_asgi_runs_its_lifespan_in_the_warm_up_and_in_the_worker(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    log = tmp_path / "exit"
    server = servers.on(
        host, {"cow-warmup": "/"}, workers=1, environ={"EXIT_LOG": str(log)}
    ).wait_serving()
    worker = me(server)["pid"]
    server.signal(signal.SIGTERM)
    server.wait_exit()
    said = notes(log)
    assert said[server.pid][:2] == ["lifespan startup", "lifespan shutdown"]
    assert said[worker] == ["lifespan startup", "lifespan shutdown", "second", "first"]


def test_another_process_of_the_user_reads_the_board(servers: Servers) -> None:

    server = servers.on("sync", QUICK, workers=3).wait_serving(workers=3)
    for pid in (server.pid, server.workers()[0]):
        board = open_board(pid)
        wait_until(
            lambda board=board: [each.state for each in board] == ["ready"] * 3,
            5,
            "ready",
        )
        assert board.master_pid == server.pid
        assert {each.pid for each in board} == set(server.workers())
        assert all(each.private > 1 << 18 for each in board)
    (link,) = [
        path
        for path in Path(f"/proc/{server.pid}/fd").iterdir()
        if "cowpreload-board" in os.readlink(path)
    ]
    assert link.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_fork_of_the_applications_own_is_not_watched(
    servers: Servers, host: str
) -> None:
    """worker() is None in a child of a worker; the worker stays watched."""
    server = servers.on(host, QUICK, workers=1, app="forking").wait_serving()
    assert server.get("/fork")[1] == b"child worker=None"
    wait_until(lambda: b"cow-watch" in server.get("/comms")[1], 5, "watching again")


def test_a_child_of_a_worker_can_be_terminated_and_leaves_the_worker_alone(
    servers: Servers,
) -> None:
    """multiprocessing's Process.terminate(), in a request of uWSGI's.

    (A child of gunicorn's workers inherits their Python handler and ignores SIGTERM,
    with and without us.)
    """
    server = servers.on("uwsgi", QUICK, workers=1, app="forking")
    worker = ready(server).workers()[0]
    assert server.get("/terminate")[1] == b"ended"
    assert server.get("/terminate")[1] == b"ended"
    assert server.workers() == [worker]


@pytest.mark.parametrize(
    "host",
    [
        "sync",
        "uwsgi",
        "gevent",
        "asgi on asyncio",
        *deep("threaded", "asgi", "uvicorn"),
    ],
)
def test_a_second_signal_does_not_skip_the_exit_handlers_that_wait(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    """An impatient operator, a master that tells its workers again, or logrotate.

    asyncio's loop gives signals their default action back when it is closed.
    """
    host, on_asyncio, _ = host.partition(" on asyncio")
    options = {**QUICK, "asgi-loop": "asyncio"} if on_asyncio else QUICK
    log = tmp_path / "exit"
    environ = {"EXIT_LOG": str(log), "BREAK": "slow-exit"}
    server = ready(servers.on(host, options, workers=1, environ=environ))
    worker = server.workers()[0]
    board = open_board(server.pid)
    os.kill(worker, signal.SIGTERM)
    wait_until(lambda: [each.state for each in board] == ["leaving"], 10, "leaving")
    if host != "uwsgi":
        os.kill(worker, signal.SIGUSR1)
    os.kill(worker, signal.SIGTERM)
    wait_until(lambda: not alive(worker), 20, "worker to be gone")
    assert exit_notes(log, worker) == ["second", "first"]
