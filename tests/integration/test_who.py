"""One way to name a server or a worker, from outside of a container too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAMS, Servers, ready, run
from harness.processes import children, wait_until
from harness.server import Server, free_port

from cowpreload import _offsets
from cowpreload.board import open_board
from cowpreload.causes import How
from cowpreload.cli import who
from cowpreload.errors import CowError, NotFoundError


def test_each_way_names_the_same_worker(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ready(servers.on("sync"), workers=2)
    monkeypatch.setattr(who, "find_masters", lambda: [server.pid])
    board = open_board(server.pid)
    first, second = board.view(1).pid, board.view(2).pid
    for text in (f"{server.pid}:1", f"{second}:1", ":1", "1", str(first)):
        assert who.worker(text) == first
    for text in ("", str(server.pid)):
        assert who.worker(text) in (first, second)
    for text in ("", str(server.pid), str(second), ":2", "2"):
        assert who.server(text).master_pid == server.pid


def test_what_cannot_be_meant_is_told_with_what_was_found(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ready(servers.on("sync"), workers=2)
    monkeypatch.setattr(who, "find_masters", lambda: [server.pid])
    slots = f"who=:9: master {server.pid} has workers in the slots 1, 2; name one"
    with pytest.raises(NotFoundError, match=slots):
        who.worker(":9")
    with pytest.raises(NotFoundError, match="who=1:x: names no process; write a pid"):
        who.worker("1:x")
    other = os.getppid()  # this process holds the boards of other tests
    told = f"pid={other}: holds no board.*masters {server.pid} found"
    with pytest.raises(NotFoundError, match=told):
        who.server(str(other))
    assert who.worker(str(other)) == other  # `why` examines any process


def can_unshare() -> bool:
    probe = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    try:
        return subprocess.run(probe, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_unshare(), reason="needs root for a pid namespace")
@pytest.mark.skipif(_offsets.own() is None, reason=_offsets.why_not())
def test_a_server_in_a_container_is_seen_from_outside(
    servers: Servers, tmp_path: Path
) -> None:
    """Its board holds pids that mean other processes here, or none."""
    from cowpreload.why.examine import examine

    port = free_port()
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command += [sys.executable, "-m", "gunicorn", "-b", f"127.0.0.1:{port}"]
    command += ["-k", "cow", "app"]
    log = tmp_path / "container.log"
    server = Server(command, port, PROGRAMS, log, {"HOME": str(tmp_path)})
    servers.running.append(server)
    server.wait_serving()
    (master,) = children(server.pid)
    (worker,) = wait_until(lambda: children(master), 20, "the worker")
    board = open_board(worker)
    wait_until(lambda: board.view(1).state == "ready", 20, "ready")
    assert board.master_pid == 1
    assert board.view(1).pid not in (0, worker)
    try:
        assert who.worker(f"{master}:1") == worker
        assert who.worker(str(master)) == worker
        status = run("-m", "cowpreload", "status", str(worker))
        assert status.returncode == 0, status.stderr
        assert f" {worker} " in status.stdout
        assert "in a pid namespace of its own, where its master is 1" in status.stdout
        found = examine(worker)
        assert (found.master_pid, found.how) == (master, How.STILL), found.notes
        with pytest.raises(CowError, match="is the master"):
            examine(master)
    finally:
        os.kill(master, signal.SIGTERM)
