"""What goes on in a server while its master warms up anew: transactions, a second
master, several hosts, paths of every kind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import QUICK, Servers
from harness.load import Load
from harness.processes import alive, children, wait_until
from harness.server import Server

from cowpreload import warmings
from cowpreload.board import open_board
from cowpreload.immortal import WHY_NOT
from cowpreload.warmup_lines import compose

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason="the heap is mortal here")

AUTO = {
    **QUICK,
    "cow-warmup": "auto",
    "cow-warmup-worth": "4M",
    "cow-warmup-repeat": "1",
}
KINDS = ("a", "b", "c")
ALL_REPLACED = "cow: warmed anew: all workers are replaced"


def pages(*kinds: str, prefix: str = "") -> list[str]:
    return [f"{prefix}/kind/{name}/{n}" for n in range(20) for name in kinds]


def is_page(path: str, status: int, body: bytes) -> bool:
    return status == 200 and body.endswith(b" 18000")


@contextlib.contextmanager
def loaded(server: Server, paths: Sequence[str], clients: int = 3) -> Iterator[None]:
    """Under load, of which nothing may be lost."""
    load = Load(server.port, paths, seconds=120, concurrency=clients, check=is_page)
    load.start()
    try:
        yield
    finally:
        report = load.stop()
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]


def maker(server: Server, path: str) -> int:
    """The process that made what this page shows."""
    return int(server.get(path)[1].split()[1])


def test_a_transaction_that_is_open_in_a_worker_ends_well(
    servers: Servers, tmp_path: Path
) -> None:
    """Its worker is replaced after it; meanwhile the master opens the same database, in
    a page, and takes 500 MiB in another. All of it below SCRIPT_NAME; and what the
    file switches off stays off."""
    file = tmp_path / "database"
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("create table entry (number integer)")
    environ = {"DATABASE": "master", "MEMORY": "master"}
    paths = pages(*KINDS, *map(str.lower, environ), prefix="/app")
    paths += pages("off", prefix="/app")
    warm = tmp_path / "warm"
    warm.write_bytes(compose("", [b"# 7 * /app/kind/%6Fff/7"], []))
    warm.chmod(0o600)
    environ |= {"DATABASE_FILE": str(file), "SCRIPT_NAME": "/app"}
    options = AUTO | {"cow-warmup-file": str(warm)}
    server = servers.on("sync", options, workers=3, app="learning", environ=environ)
    server.wait_serving(paths[0], workers=3)
    answers: list[tuple[int, bytes]] = []

    def begin() -> None:
        answers.append(server.get("/app/transaction/7", timeout=120))

    with loaded(server, paths):
        client = threading.Thread(target=begin)
        client.start()
        try:
            server.wait_log("begun 7")
            line = server.wait_log("cow: warmed anew pages=", 60)
            assert not answers
        finally:
            Path(f"{file}.go").touch()
            client.join()
        server.wait_log(ALL_REPLACED, 60)
    # So much may take longer than a page may.
    assert re.search("pages=(5 dropped=0|4 dropped=1) ", line)
    assert warmings.read(open_board(server.pid))[-1].grew < 100 << 20
    assert answers == [(200, b"committed 7")]
    with contextlib.closing(sqlite3.connect(file)) as database:
        assert database.execute("select number from entry").fetchall() == [(7,)]
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    assert maker(server, "/app/kind/a/7") == server.pid
    assert maker(server, "/app/kind/off/7") != server.pid
    # What the page has left in the master is said, as of any warm up.
    assert f"fork-safety file path={file}" in server.log


@pytest.mark.deep  # USR2, and the wait until each of two masters pays
def test_a_second_master_warms_up_anew_when_the_first_is_gone(servers: Servers) -> None:
    """USR2 in the midst of a warm up, which it ends; then TERM to the old master."""
    environ = {"SLOW": "master"}
    server = servers.on("sync", AUTO, workers=2, app="learning", environ=environ)
    server.wait_serving(pages("a")[0], workers=2)
    with loaded(server, pages(*KINDS, "slow"), clients=1):
        server.wait_log("asked master slow", 60)
        server.signal(signal.SIGUSR2)
        server.wait_log("cow: warmed anew pages=0: a signal came", 60)
        second = wait_until(
            lambda: [pid for pid in children(server.pid) if len(children(pid)) == 2],
            60,
            "a second master",
        )[0]
        old = [pid for pid in server.workers() if pid != second]
        board = open_board(second)
        assert [each.generation for each in board] == [1, 1]
        server.signal(signal.SIGTERM)
        server.process.wait(60)
        wait_until(lambda: not any(map(alive, old)), 30, "the old workers' end")
        try:
            server.wait_log(ALL_REPLACED, 60)
            assert warmings.read(board)[-1].verdict == "confirmed"
            assert maker(server, "/kind/a/7") == second
        except BaseException:
            os.kill(second, signal.SIGKILL)
            raise
    workers = children(second)
    os.kill(second, signal.SIGTERM)
    wait_until(lambda: not any(map(alive, [second, *workers])), 30, "its end")


@pytest.mark.parametrize(
    "host", ["uwsgi", pytest.param("sync", marks=pytest.mark.deep)]
)
def test_a_thread_of_the_application_in_the_master_runs_on(
    servers: Servers, tmp_path: Path, host: str
) -> None:
    """It runs between any two steps of Python's, and no child has it."""
    options = {**AUTO, **({"enable-threads": "true"} if host == "uwsgi" else {})}
    beats = tmp_path / "beats"
    environ = {"BEAT": str(beats)}
    server = servers.on(host, options, workers=1, app="learning", environ=environ)
    server.wait_serving(pages("a")[0])
    with loaded(server, pages(*KINDS), clients=2):
        line = server.wait_log("cow: warmed anew pages=", 60)
        server.wait_log(ALL_REPLACED, 60)
    assert "pages=3 dropped=0 " in line
    assert maker(server, "/kind/a/7") == server.pid
    before = beats.stat().st_size
    wait_until(lambda: beats.stat().st_size > before, 30, "the thread")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0


@pytest.mark.deep  # here: tests/unit/test_served.py
def test_pages_of_several_hosts_are_asked_for_with_the_host_they_were_asked_of(
    servers: Servers,
) -> None:
    """Django refuses a host that is not in ALLOWED_HOSTS; its connections are closed
    before the fork. The paths hold a space, a percent sign and another script."""
    server = servers.on("sync", AUTO, workers=2, app="learning_django")
    hosts = {"Host": "one.example"}, {"Host": "two.example"}
    odd = "/kind/c%20%25%D0%BF/1"
    server.wait_log("cow: preload ", 60)

    def visit() -> bool:
        for host in hosts:
            for path in ("/kind/a/1", "/kind/b/2", odd):
                status, body = server.get(path, headers=host)
                assert is_page(path, status, body), (path, body)
        return ALL_REPLACED in server.log

    board = open_board(server.pid)
    wait_until(lambda: [e.state for e in board].count("ready") == 2, 60, "workers")
    wait_until(visit, 90, "all workers to be replaced")
    again = warmings.read(board)[-1]
    assert again.pages == (("traffic", 6),)
    _, body = server.get(odd, headers=hosts[1])
    assert int(body.split()[1]) == server.pid
    assert "cow: fork-safety" not in server.log
