"""Recycling keeps its pace: after reloads, and where a worker does not go."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from typing import Any

import pytest
from conftest import QUICK, Servers, deep
from harness.load import Load
from harness.processes import alive, wait_until
from harness.server import Server
from test_lifecycle import me

from cowpreload.board import open_board

SOFT = {**QUICK, "cow-max-private": "60M"}
LINE = re.compile(r"cow: worker=1 gen=1 pid=(\d+) (\w+) .* age=\d+s( leaving=\d+s)?\n")


def ask(server: Server, path: str, found: list[Any]) -> None:
    with contextlib.suppress(OSError):
        found.append(server.get(path))


def in_background(server: Server, path: str) -> tuple[threading.Thread, list[Any]]:
    """Make a request that may last, or die with its worker; its answer."""
    found: list[Any] = []
    request = threading.Thread(target=ask, args=(server, path, found))
    request.start()
    return request, found


def impatient(servers: Servers, host: str, seconds: int = 1) -> Server:
    """One worker, which has these seconds to leave in."""
    name = "worker-reload-mercy" if host == "uwsgi" else "graceful-timeout"
    options = {**SOFT, name: str(seconds)}
    return servers.on(host, options, workers=1).wait_serving()


def reload(server: Server) -> None:
    """All workers anew: the lowest slots are empty afterwards."""
    before = set(server.workers())
    server.signal(signal.SIGHUP)
    wait_until(lambda: not before & set(server.workers()), 30, "new workers")


def test_after_a_reload_recycling_is_as_fast_as_before(servers: Servers) -> None:
    """The ticket of a slot that stayed empty held all others for ten seconds each."""
    options = {**QUICK, "cow-max-growth": "40M", "cow-max-recycling": "1"}
    server = servers.on("sync", options, workers=6).wait_serving(workers=6)
    reload(server)
    load = Load(server.port, ["/grow?mb=20"], seconds=60, concurrency=6).start()
    try:
        # They took a minute.
        wait_until(lambda: server.log.count(" recycled ") >= 7, 35, "seven recyclings")
    finally:
        report = load.stop()
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]


@pytest.mark.parametrize(
    "host", ["sync", "asgi", "uwsgi", *deep("threaded", "gevent", "uvicorn")]
)
def test_a_recycling_is_logged_when_it_is_decided(servers: Servers, host: str) -> None:
    """Not when it is over: a request may last, and the operator looks now.

    A worker is watched while its request hangs, and finishes it.
    """
    server = servers.on(host, SOFT, workers=1).wait_serving()
    request, found = in_background(server, "/hang?s=3&mb=80")
    server.wait_log(" recycled ")
    assert not found
    request.join()
    assert found == [(200, b"woken")]
    wait_until(lambda: me(server)["worker"]["generation"] == 2, 20, "generation 2")
    assert server.log.count(" recycled ") == 1


def test_a_worker_that_took_its_signal_away_is_recycled_all_the_same(
    servers: Servers,
) -> None:
    """It stayed for ever, with its limits off; gunicorn's loop is told instead."""
    server = impatient(servers, "sync", 3)  # its loop turns once a second
    worker = me(server)["pid"]
    assert server.get("/deaf")[0] == 200
    server.get("/grow?mb=80")
    server.wait_log(" unheeded ")
    wait_until(lambda: not alive(worker), 20, "end")
    assert [each[1] for each in LINE.findall(server.log)] == ["recycled", "unheeded"]
    assert me(server)["worker"]["generation"] == 2


@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("threaded")])
def test_a_worker_that_cannot_leave_is_ended_as_its_host_would(
    servers: Servers, host: str
) -> None:
    """After twice its patience, since it was told twice."""
    server = impatient(servers, host)
    worker = me(server)["pid"]
    request, _ = in_background(server, "/hang?s=40&mb=80")
    server.wait_log(" recycled ")
    board = open_board(server.pid)
    assert next(iter(board)).state == "leaving"
    line = server.wait_log(" killed ")
    request.join()
    wait_until(lambda: not alive(worker), 10, "end")
    told = LINE.findall(server.log)
    assert [each[1] for each in told] == ["recycled", "unheeded", "killed"]
    assert "leaving=2s" in line
    wait_until(lambda: me(server)["worker"]["generation"] == 2, 20, "generation 2")


def test_a_worker_that_leaves_while_a_reload_replaces_it_keeps_no_right_to_recycle(
    servers: Servers,
) -> None:
    """Nobody comes to its slot: the others waited for ten seconds."""
    environ = {"BREAK": "slow-exit"}
    server = servers.on("sync", SOFT, workers=1, environ=environ).wait_serving()
    board = open_board(server.pid)
    server.get("/grow?mb=80")
    wait_until(lambda: [each.state for each in board] == ["leaving"], 10, "leaving")
    reload(server)
    wait_until(lambda: [each.state for each in board] == ["ready"], 20, "ready")
    assert [each.slot for each in board] == [2]
    wait_until(lambda: not any(board.raw.tickets), 20, "nobody's right to recycle")
