"""Limits on real workers: no request is lost, no loop, nobody waits for ever."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from http.client import HTTPException
from pathlib import Path

import pytest
from conftest import QUICK, Servers, deep
from harness.load import Load
from harness.processes import alive, wait_until
from harness.server import Server
from test_lifecycle import HOSTS, LOOPS, me

from cowpreload.board import open_board

LINE = re.compile(
    r"cow: worker=(\d+) gen=(\d+) pid=(\d+) (recycled|killed) private=(\d+)MiB "
    r"(limit|growth-limit|hard-limit)=(\d+)MiB age=(\d+)s"
)
NUMBER = 20_000


def ends(server: Server) -> list[tuple[str, ...]]:
    """The recycling lines in the log."""
    return LINE.findall(server.log)


def sum_is_right(path: str, status: int, body: bytes) -> bool:
    return status == 200 and body == str(sum(range(NUMBER))).encode()


# A loss that one recycling in ten shows is seen by 30 in 96 of 100 runs, by 100 always,
# by 8 in 57. Here: 30 on the two hosts, 8 where a class waits for requests in its own
# way; everything 30 and 100 times in deep.
HERE = {("sync", 0): 30, ("uwsgi", 0): 30, ("asgi", 2): 8}
MANY = (30, 100)
# A worker has grown by this after three requests.
GROWTH = {**QUICK, "cow-max-growth": "20M", "cow-max-recycling": "3"}
GROW = f"/growsum?n={NUMBER}&mb=7"
# Of four clients so many keep their connections, where the host does.
KEEP = dict.fromkeys(("threaded", *LOOPS), 2)
ALL = [(host, KEEP.get(host, 0)) for host in (*HOSTS, *LOOPS, "uwsgi-threaded")]
ALL += [(host, keepalive) for host in KEEP for keepalive in (0, 4)]


def bounded(recyclings: int) -> int:
    """Seconds: on a machine with ten others' work, one took two."""
    return max(150, 5 * recyclings)


@pytest.mark.parametrize(
    ("host", "keepalive", "wanted"),
    [
        *((*each, wanted) for each, wanted in HERE.items()),
        *deep(*((*each, n) for each in ALL for n in MANY if HERE.get(each) != n)),
    ],
)
def test_many_recyclings_under_load_lose_no_request(
    servers: Servers, host: str, keepalive: int, wanted: int
) -> None:
    server = servers.on(host, GROWTH, workers=8).wait_serving(workers=8)
    load = Load(
        server.port,
        [GROW],
        seconds=bounded(wanted),
        pause=0.02,
        keepalive=keepalive,
        check=sum_is_right,
    ).start()
    try:
        wait_until(
            lambda: len(ends(server)) >= wanted, bounded(wanted), f"{wanted} recyclings"
        )
    finally:
        report = load.stop()
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]
    assert report.right > wanted
    assert {each[3] for each in ends(server)} == {"recycled"}


@pytest.mark.parametrize(
    "host", ["sync", "uwsgi", *deep("threaded", "gevent", "uvicorn")]
)
def test_a_hung_worker_over_the_hard_limit_is_killed_in_its_request(
    servers: Servers, host: str
) -> None:
    options = {**QUICK, "cow-max-private-hard": "80M", "cow-check-interval": "1"}
    server = servers.on(host, options, workers=1, environ={"HEAP_MB": "1"})
    worker = me(server.wait_serving())["pid"]
    # In the midst of its request, which would take longer: the connection dies with it.
    with pytest.raises((OSError, HTTPException)):
        server.get("/hang?s=50&mb=100")
    wait_until(lambda: not alive(worker), 5, "death")
    line = server.wait_log(" killed ")
    assert f"pid={worker} killed private=" in line
    assert "hard-limit=80MiB" in line
    assert me(server)["worker"]["generation"] == 2


@pytest.mark.parametrize(
    ("host", "name"),
    [
        *(("sync", "max-private"), ("uwsgi", "max-private")),
        *deep(("sync", "max-private-hard"), ("uwsgi", "max-private-hard")),
        *deep(("threaded", "max-private"), ("threaded", "max-private-hard")),
    ],
)
def test_a_limit_below_a_fresh_worker_is_refused_at_start(
    servers: Servers, host: str, name: str
) -> None:
    server = servers.on(host, {f"cow-{name}": "300K"})
    # A worker that misses its signal while it boots holds gunicorn for 30 s.
    assert server.wait_exit(60) == (22 if host == "uwsgi" else 3)
    line = server.wait_log("a fresh worker has private=")
    assert re.search(rf"{name}=300KiB: .* private=\d+[KM]iB already; raise", line)


def test_a_fresh_worker_over_the_limit_later_is_warned_of_once(
    servers: Servers,
) -> None:
    """A reload with a limit that is too low: the server serves on, without a loop."""
    server = servers.gunicorn(
        "--worker-class", "cow", "--workers", "2", "--config", "limit.py",
        environ={"LIMIT": "500M", "LIMIT_FILE": "unused"},
    )  # fmt: skip
    server.wait_serving(workers=2)
    first = server.workers()
    limit_file = server.log_path.with_name("limit")
    limit_file.write_text("300K")
    server.signal(signal.SIGHUP)
    server.wait_log("the limit waits for a later worker")
    wait_until(lambda: not set(first) & set(server.workers()), 20, "new workers")
    second = server.workers()
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert server.get("/")[0] == 200
        time.sleep(0.05)
    assert server.workers() == second
    assert server.log.count("the limit waits") == 1


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
def test_at_most_max_recycling_workers_leave_at_once(
    servers: Servers, host: str
) -> None:
    options = {**QUICK, "cow-max-growth": "40M", "cow-max-recycling": "1"}
    environ = {"EXIT_LOG": "/dev/null"}
    server = servers.on(host, options, workers=4, environ=environ)
    server.wait_serving(workers=4)
    board = open_board(server.pid)
    most = 0
    load = Load(server.port, ["/grow?mb=20"], seconds=60, concurrency=4).start()
    try:
        while len(ends(server)) < 8:
            most = max(most, sum(each.state == "leaving" for each in board))
            assert not load.over
            time.sleep(0.01)  # a worker leaves for longer
    finally:
        report = load.stop()
    assert most == 1
    assert (report.failed, report.wrong) == (0, 0)


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_worker_killed_while_it_leaves_does_not_stop_recycling(
    servers: Servers, host: str
) -> None:
    """SIGKILL while leaving, that is, while it holds the right to recycle."""
    options = {**QUICK, "cow-max-growth": "40M", "cow-max-recycling": "1"}
    environ = {"BREAK": "slow-exit"}
    server = servers.on(host, options, workers=2, environ=environ)
    server.wait_serving(workers=2)
    board = open_board(server.pid)
    for _ in range(2):
        with contextlib.suppress(OSError):
            server.get("/grow?mb=60")
        (leaving,) = wait_until(
            lambda: [each.pid for each in board if each.state == "leaving"],
            10,
            "leaving",
        )
        os.kill(leaving, signal.SIGKILL)
        wait_until(lambda pid=leaving: not alive(pid), 10, "death")
        wait_until(
            lambda: [each.state for each in board] == ["ready"] * 2, 20, "two ready"
        )
    assert len(ends(server)) == 2


@pytest.mark.each_python
def test_both_hosts_report_the_same_way(servers: Servers) -> None:
    lines = []
    for host in ("sync", "uwsgi"):
        options = {**QUICK, "cow-max-private": "60M", "cow-strikes": "2"}
        server = servers.on(host, options, workers=1).wait_serving()
        server.get("/grow?mb=80")
        line = server.wait_log(" recycled ")
        lines.append(re.sub(r"\d+", "N", line[line.index("cow:") :]))
        assert json.loads(server.get("/me")[1])["worker"]["slot"] == 1
    assert lines[0] == lines[1]


# Its own threaded worker lost two in five: seven show it in 97 of 100 runs.
@pytest.mark.parametrize(
    ("threads", "wanted"), [("3", 7), *deep(("3", 15), ("3", 50), ("1", 15), ("1", 50))]
)
def test_recycling_on_gunicorn_23_loses_no_request(
    servers: Servers, gunicorn23: Path, threads: str, wanted: int
) -> None:
    flags = [part for key, value in GROWTH.items() for part in (f"--{key}", value)]
    server = servers.gunicorn(
        *["-k", "cow", "-w", "8", "--threads", threads, *flags],
        environ={"PYTHONPATH": str(gunicorn23)},
    ).wait_serving(workers=8)
    assert "Starting gunicorn 23" in server.log
    assert "findings=0" in server.wait_log("cow: preload")  # its own pipe is none
    load = Load(
        server.port,
        [GROW],
        seconds=bounded(wanted),
        pause=0.02,
        check=sum_is_right,
    ).start()
    try:
        wait_until(
            lambda: len(ends(server)) >= wanted, bounded(wanted), f"{wanted} recyclings"
        )
    finally:
        report = load.stop()
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]
