"""A running master that warms up anew, from its traffic: what it saves, and loses."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import QUICK, Servers, deep, needs_uwsgi
from harness.load import Load
from harness.processes import alive, wait_until
from harness.server import Server

from cowpreload import _core, warmings
from cowpreload.board import open_board
from cowpreload.immortal import WHY_NOT
from cowpreload.servers import look as servers_look

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason="the heap is mortal here")

AUTO = {**QUICK, "cow-warmup": "auto", "cow-warmup-worth": "4M"}
# A space, a percent sign, another script.
NAMES = ("a", "b", "c%20%25%D0%BF")
PATHS = [f"/kind/{name}/{number}" for number in range(20) for name in NAMES]
SLOW = [*PATHS, "/kind/slow/1"]
# The same code as on gunicorn, but for what each host's short tests look at.
(UWSGI,) = deep("uwsgi")


def is_page(path: str, status: int, body: bytes) -> bool:
    return status == 200 and body.endswith(b" 18000")


@contextlib.contextmanager
def loaded(server: Server, paths: list[str]) -> Iterator[Load]:
    """Under load, of which nothing may be lost."""
    load = Load(
        server.port, paths, seconds=120, concurrency=3, pause=0.03, check=is_page
    ).start()
    try:
        yield load
    finally:
        report = load.stop()
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]


def ready(server: Server) -> int:
    return [each.state for each in open_board(server.pid)].count("ready")


def signals(server: Server) -> list[str]:
    """Those that the master ignores, and has handlers for; glibc's own (33) comes with
    the first thread."""
    about = Path(f"/proc/{server.pid}/status").read_text()
    return re.findall(r"Sig(?:Ign|Cgt):\s+\w{8}(\w{8})", about)


@pytest.mark.each_python
@pytest.mark.parametrize(
    "host",
    ["sync", "uwsgi", *deep("threaded", "asgi", "gevent", "uvicorn", "uwsgi-threaded")],
)
def test_what_was_served_is_warmed_and_all_workers_are_replaced(
    servers: Servers, host: str
) -> None:
    # A login of the operator's is not for paths that visitors choose.
    options = {**AUTO, "cow-warmup-header": "Cookie: sessionid=x"}
    server = servers.on(host, options, workers=3, app="learning")
    server.wait_serving(PATHS[0], workers=3)
    board = open_board(server.pid)
    # uWSGI's master may still be setting its handlers, SIGHUP's among them.
    wait_until(lambda: int(signals(server)[1], 16) & 1, 20, "the master's handlers")
    handled = signals(server)
    with loaded(server, PATHS):
        server.wait_log("cow: warmed anew pages=3 dropped=0 ", 60)
        line = server.wait_log("the others follow", 60)
        server.wait_log("cow: warmed anew: all workers are replaced", 60)
    # The last one's slot may be between two workers.
    wait_until(lambda: [each.generation for each in board] == [2, 2, 2], 30, "all")
    assert len(re.findall(r"recycled private=\d+MiB renewed ", server.log)) == 3
    # Of the first one when it was replaced: a sample taken earlier may be any size.
    found = re.search(r" before=(\d+)MiB", line)
    assert found
    assert int(found[1]) >= 4
    most = (int(found[1]) << 20) * 3 / 4
    wait_until(lambda: max(each.grown for each in board) < most, 60, "the gain")
    pid, maker, _ = server.get("/kind/a/7")[1].split()
    assert int(maker) == server.pid
    assert int(pid) in server.workers()
    assert server.log.count("before_fork") >= 2
    assert "cow: fork-safety" not in server.log
    assert "/kind/" not in server.log  # what was requested is nobody's business
    assert signals(server) == handled
    start, again = warmings.read(board)
    assert (start.pages, again.pages) == ((), (("traffic", 3),))
    assert again.verdict == "confirmed"
    assert again.grown_after < again.grown_before * 3 / 4
    assert (again.grown_before >> 20) == int(found[1])
    assert again.total_pss > 3 * again.grown_before / 2
    view = servers_look(board)
    assert view.master.host.lower().startswith(("gunicorn 2", "uwsgi 2"))
    frozen = view.master.frozen
    assert frozen is not None
    assert (frozen.generation, frozen.inherited > 1 << 20) == (2, True)
    assert frozen.immortal > 0
    assert dict(view.counts.recycled)["renewed"] == 3
    assert view.counts.requests > 0


@pytest.mark.parametrize("host", ["sync", UWSGI])
def test_a_server_without_any_warm_up_says_once_what_it_could_save(
    servers: Servers, host: str
) -> None:
    options = {**QUICK, "cow-warmup-worth": "4M"}
    server = servers.on(host, options, app="learning").wait_serving(PATHS[0])
    with loaded(server, PATHS):
        line = server.wait_log("cow: warmup=unset: ", 60)
    assert re.search(r"grown by \d+MiB since .*; cow-warmup=auto would save", line)
    assert server.log.count("cow: warmup=unset: ") == 1
    assert {each.generation for each in open_board(server.pid)} == {1}


@pytest.mark.parametrize(
    ("options", "environ", "why"),
    [
        ({}, {"KEEP_MORTAL": "1"}, "the heap cannot be frozen twice"),
        ({"cow-immortal": "off"}, {}, "the heap is mortal"),
    ],
)
def test_what_was_to_stay_mortal_is_not_frozen_again(
    servers: Servers, options: dict[str, str], environ: dict[str, str], why: str
) -> None:
    server = servers.on("sync", {**AUTO, **options}, app="learning", environ=environ)
    server.wait_serving(PATHS[0])
    assert f"nothing is warmed from traffic: {why}" in server.log


@needs_uwsgi
@pytest.mark.parametrize(
    ("ini", "why"),
    [
        ({"log-master": "true"}, "the master writes what workers log"),
        pytest.param(
            {"master-as-root": "true", "uid": "nobody"},
            "the master runs as uid=0, the workers as uid=65534; list pages, or run",
            marks=pytest.mark.deep,
        ),
    ],
)
def test_a_master_that_must_not_request_pages_says_why(
    servers: Servers, ini: dict[str, str], why: str
) -> None:
    if "uid" in ini and os.geteuid():
        pytest.skip("only root has a master of another user than its workers")
    server = servers.uwsgi({**AUTO, **ini}, app="learning")
    server.wait_log(f"cow: warmup=auto: nothing is warmed from traffic: {why}")


@needs_uwsgi
@pytest.mark.deep
def test_mounted_applications_of_one_interpreter_are_warmed_each_below_its_own_mount(
    servers: Servers,
) -> None:
    ini = {"mount": ["/a=learning.py", "/b=app.py"], "manage-script-name": "true"}
    ini |= {"single-interpreter": "true", "processes": "2", "forkbomb-delay": "0"}
    paths = [f"/a{path}" for path in PATHS]
    server = servers.uwsgi({**AUTO, **ini}, app=None)
    server.wait_serving(paths[0], workers=2)
    with loaded(server, paths):
        server.wait_log("cow: warmed anew pages=3 dropped=0 ", 60)
        server.wait_log("cow: warmed anew: all workers are replaced", 60)
    assert int(server.get("/a/kind/a/7")[1].split()[1]) == server.pid


def test_gunicorn_23_warms_up_anew(servers: Servers, gunicorn23: Path) -> None:
    """Its queue of signals is another, and it reaps workers in the handler."""
    environ = {"PYTHONPATH": str(gunicorn23)}
    server = servers.on("sync", AUTO, workers=2, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=2)
    with loaded(server, PATHS):
        server.wait_log("cow: warmed anew: all workers are replaced", 60)
    assert "Starting gunicorn 23" in server.log
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0


def test_a_gain_that_does_not_come_leaves_the_other_workers(servers: Servers) -> None:
    """Memory that each worker makes of its own is no page's first request."""
    environ = {"NEVER": "1"}
    server = servers.on("sync", AUTO, workers=3, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=3)
    with loaded(server, PATHS):
        server.wait_log("the others stay", 60)
    board = open_board(server.pid)
    assert sorted(each.generation for each in board) == [1, 1, 2]
    assert warmings.read(board)[1].verdict == "not confirmed"


@pytest.mark.parametrize("host", ["sync", UWSGI])
def test_pages_that_misbehave_are_left_out_and_the_server_serves_on(
    servers: Servers, tmp_path: Path, host: str
) -> None:
    """Half of them only in the master, where no trial has shown it."""
    environ = {"HANG": "master", "CATCH": "master", "RAISE": "master", "END": "master"}
    environ["COUNT"] = "master"  # its before_fork callback waits for ever
    environ |= {
        "THREAD": "trial",
        "DIE": "trial",
        "DATABASE": "trial",
        "FINISH": "trial",
    }
    options = {**AUTO, "cow-warmup-repeat": "1"}
    planted = [*PATHS, *(f"/kind/{name.lower()}/1" for name in environ)]
    planted += ["/kind/cron/1"]  # by name
    environ["DATABASE_FILE"] = str(tmp_path / "database")
    server = servers.on(host, options, workers=2, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=2)
    with loaded(server, planted):
        line = server.wait_log("cow: warmed anew pages=", 60)
        server.wait_log("cow: warmed anew: all workers are replaced", 60)
    assert "pages=4 dropped=8 " in line
    given_up = "cow: before_fork callbacks, called again: given up after 1 s; it waits"
    assert server.log.count(given_up) == 1
    asked = set(re.findall(r"asked master (\w+)", server.log))
    assert asked == {"hang", "catch", "raise", "end", "count"}
    assert "exit handlers of a trial" not in server.log
    assert not re.search(r"cow: fork-safety|Traceback", server.log)
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0


@pytest.mark.deep
@pytest.mark.parametrize("where", ["trial", "master"])
def test_a_page_that_takes_500_mb_does_not_make_a_running_master_large(
    servers: Servers, where: str
) -> None:
    """It gives them back; where that takes too long, the page stays cold."""
    environ = {"MEMORY": where}
    server = servers.on("sync", AUTO, workers=2, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=2)
    with loaded(server, [*PATHS, "/kind/memory/1"]):
        server.wait_log("cow: warmed anew pages=", 60)
        server.wait_log("cow: warmed anew: all workers are replaced", 60)
    assert f"asked {where} memory" in server.log
    assert _core.take_reading(server.pid).rss < 200 << 20


def test_what_no_server_catches_of_a_page_ends_no_server(servers: Servers) -> None:
    """gunicorn's loop does not: neither asyncio's CancelledError nor gevent's Timeout
    is an Exception."""
    environ = {"LEAP": "master"}
    server = servers.on("sync", AUTO, workers=2, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=2)
    paths = [*(f"/kind/leap/{number}" for number in range(20)), *PATHS]
    with loaded(server, paths):
        server.wait_log("cow: warmed anew pages=3 dropped=1 ", 60)
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0


@pytest.mark.parametrize(
    ("host", "number"),
    [
        ("sync", signal.SIGTERM),
        ("uwsgi", signal.SIGTERM),
        pytest.param("sync", signal.SIGINT, marks=pytest.mark.deep),
        pytest.param("sync", signal.SIGQUIT, marks=pytest.mark.deep),
        pytest.param("uwsgi", signal.SIGINT, marks=pytest.mark.deep),
    ],
)
def test_a_master_that_is_told_to_end_meanwhile_does(
    servers: Servers, tmp_path: Path, host: str, number: int
) -> None:
    pidfile = tmp_path / "pid"
    kept = {"pidfile": str(pidfile), "vacuum": "true"}
    options = {**AUTO, **(kept if host == "uwsgi" else {"pid": str(pidfile)})}
    environ = {"HANG": "master"}
    server = servers.on(host, options, workers=2, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=2)
    paths = [*PATHS, "/kind/hang/1"]
    load = Load(server.port, paths, seconds=60, concurrency=2).start()
    try:
        server.wait_log("asked master hang", 60)
        server.signal(number)
        assert server.wait_exit() == 0
    finally:
        load.stop()  # what comes after the signal is refused
    assert not pidfile.exists()


@pytest.mark.parametrize(
    ("host", "number"),
    [
        ("sync", signal.SIGHUP),
        *deep(("sync", signal.SIGTTIN), ("sync", signal.SIGTTOU)),
        *deep(("uwsgi", signal.SIGHUP)),
    ],
)
def test_another_signal_meanwhile_is_obeyed_and_no_request_is_lost(
    servers: Servers, host: str, number: int
) -> None:
    environ = {"SLOW": "master"}
    server = servers.on(host, AUTO, workers=2, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=2)
    with loaded(server, SLOW):
        server.wait_log("asked master slow", 60)
        first = server.workers()
        server.signal(number)
        if number == signal.SIGHUP:
            told = "Hang up: Master" if host == "sync" else "gracefully killing workers"
            server.wait_log(told)
            wait_until(lambda: not set(first) & set(server.workers()), 30, "new ones")
        else:
            workers = 3 if number == signal.SIGTTIN else 1
            wait_until(lambda: ready(server) == workers, 30, f"{workers} workers")
    assert "a signal came" in server.log


@pytest.mark.parametrize("host", ["sync", UWSGI])
def test_a_worker_that_dies_meanwhile_is_replaced(servers: Servers, host: str) -> None:
    environ = {"SLOW": "master"}
    server = servers.on(host, AUTO, workers=2, app="learning", environ=environ)
    server.wait_serving(PATHS[0], workers=2)
    load = Load(server.port, SLOW, seconds=120, concurrency=2).start()
    try:
        server.wait_log("asked master slow", 60)
        victim = server.workers()[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not alive(victim), 20, "its end")
        server.wait_log("cow: warmed anew: all workers are replaced", 60)
        wait_until(lambda: ready(server) == 2, 30, "both")
    finally:
        load.stop()  # what the victim was serving is lost, as ever
