"""What an operator sends to a master: TTIN, TTOU, HUP, USR2, the death of it."""

from __future__ import annotations

import contextlib
import os
import re
import signal

import pytest
from conftest import QUICK, SITE, Servers, deep, ready
from harness.processes import alive, children, wait_until

from cowpreload.board import open_board


def test_ttin_and_ttou_take_and_free_slots(servers: Servers) -> None:
    server = ready(servers.on("sync", QUICK, workers=2), 2)
    board = open_board(server.pid)
    server.signal(signal.SIGTTIN)
    wait_until(lambda: [each.slot for each in board] == [1, 2, 3], 10, "three slots")
    for left in (2, 1):
        server.signal(signal.SIGTTOU)
        wait_until(lambda left=left: len(list(board)) == left, 10, f"{left} slots")
    server.signal(signal.SIGTTIN)
    wait_until(
        lambda: sorted(each.state for each in board) == ["ready"] * 2, 10, "two again"
    )
    assert {each.slot for each in board} <= {1, 2, 3}


def test_ttin_above_the_boards_size_serves_on_without_limits(servers: Servers) -> None:
    """A full board costs the next worker its limits, not the server its life."""
    server = ready(servers.on("sync", QUICK, workers=1))
    pid = server.workers()[0]
    board = open_board(server.pid)
    # The board of another process is read-only: fill it from the worker's side.
    gdb_free = os.open(_board_link(server.pid), os.O_RDWR)
    try:
        _fill(gdb_free, board.raw.slots, pid)
        server.signal(signal.SIGTTIN)
        server.wait_log("cow: board full slots=1024")
        wait_until(lambda: len(server.workers()) == 2, 10, "two workers")
        assert server.get("/")[0] == 200
    finally:
        os.close(gdb_free)


def _board_link(pid: int) -> str:
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        with contextlib.suppress(OSError):
            if "cowpreload-board" in os.readlink(path):
                return path
    raise LookupError(pid)


def _fill(fd: int, slots: int, pid: int) -> None:
    """Mark every slot as held by a living process."""
    from cowpreload._core import ffi

    first = ffi.offsetof("struct cow_board", "slot")
    size = ffi.sizeof("struct cow_slot")
    for slot in range(slots):
        taken = (2).to_bytes(4, "little") + pid.to_bytes(4, "little")
        os.pwrite(fd, taken, first + slot * size)


def test_hup_replaces_the_workers_and_keeps_the_frozen_heap(servers: Servers) -> None:
    server = ready(servers.on("sync", QUICK, workers=2), 2)
    before = set(server.workers())
    server.signal(signal.SIGHUP)
    wait_until(
        lambda: len(server.workers()) == 2 and not before & set(server.workers()),
        20,
        "new workers",
    )
    assert server.log.count("cow: preload") == 1
    board = open_board(server.pid)
    wait_until(lambda: [each.state for each in board] == ["ready"] * 2, 10, "ready")


def test_a_reload_with_a_typo_keeps_the_server_and_its_settings(
    servers: Servers,
) -> None:
    environ = {"LIMIT": "500M"}
    server = servers.gunicorn("-k", "cow", "-c", "limit.py", environ=environ)
    server.wait_serving()
    before = server.workers()
    server.log_path.with_name("limit").write_text("500X")
    server.signal(signal.SIGHUP)
    server.wait_log("max-private=500X: is no size")
    wait_until(lambda: server.workers() not in (before, []), 20, "a new worker")
    assert server.get("/")[0] == 200


def test_usr2_starts_a_second_master_with_its_own_board(servers: Servers) -> None:
    server = ready(servers.on("sync", QUICK, workers=1))
    server.signal(signal.SIGUSR2)
    second = wait_until(
        lambda: [pid for pid in children(server.pid) if children(pid)], 20, "a master"
    )[0]
    try:
        wait_until(lambda: server.log.count("cow: preload") == 2, 20, "its preload")
        board = open_board(second)
        assert board.master_pid == second
        wait_until(lambda: [each.state for each in board] == ["ready"], 10, "ready")
        os.kill(server.workers()[0], 0)
    finally:
        workers = children(second)
        os.kill(second, signal.SIGTERM)
        wait_until(lambda: not any(map(alive, [second, *workers])), 20, "its end")
    assert server.get("/")[0] == 200


@pytest.mark.parametrize("host", ["sync", "gevent", *deep("threaded", "uvicorn")])
def test_workers_leave_by_themselves_when_the_master_is_killed(
    servers: Servers, host: str
) -> None:
    # uvicorn looks around at each heartbeat, half of the timeout apart.
    server = ready(servers.on(host, {**QUICK, "timeout": "4"}, workers=2), 2)
    workers = server.workers()
    server.signal(signal.SIGKILL)
    server.process.wait()
    wait_until(lambda: not any(map(alive, workers)), 40, "workers to leave")


def test_no_orphans_of_uwsgi_when_the_master_is_killed(servers: Servers) -> None:
    options = {**QUICK, "no-orphans": "true"}
    server = ready(servers.on("uwsgi", options), 2)
    workers = server.workers()
    server.signal(signal.SIGKILL)
    server.process.wait()
    wait_until(lambda: not any(map(alive, workers)), 10, "workers to leave")


def test_uwsgis_reload_loads_and_freezes_anew(servers: Servers) -> None:
    server = ready(servers.on("uwsgi", QUICK), 2)
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.log.count("cow: preload") == 2, 30, "second preload")
    server.wait_serving(workers=2)


def test_the_shop_serves_under_both_hosts_with_its_own_files(servers: Servers) -> None:
    """The files that a user copies, as they are."""
    environ = {"SHOP_CATALOGUE_MB": "5", "SHOP_NELSON": "0", "PYTHONPATH": str(SITE)}
    environ["SHOP_DB"] = str(servers.database())
    server = servers.gunicorn(
        "-c", "gunicorn.conf.py", app="shop.wsgi", directory=SITE, environ=environ
    ).wait_serving(workers=4, path="/product/1/")
    # Its routes, each twice: as many as it has.
    assert re.search(r"warmup-requests=[1-9]\d* findings=0", server.log)
    # The file asks for the plugin itself, before ours could say where it is.
    environ["COW_PLUGINS_DIR"] = str(servers.plugins())
    server = servers.uwsgi(
        {"ini": str(SITE / "uwsgi.ini"), "processes": "2"},
        app=None,
        directory=SITE,
        environ=environ,
        plugin=False,
    ).wait_serving(path="/search/?q=lamp")
    assert "findings=0" in server.log
