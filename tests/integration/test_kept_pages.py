"""cow-warmup-file on real servers: what one has learned warms the next."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import QUICK, Servers
from harness.processes import alive, children, wait_until
from harness.server import Server

from cowpreload import served
from cowpreload.board import open_board
from cowpreload.shapes import plain_shape
from cowpreload.warmup_lines import compose, parse

# The first application has the main interpreter, the second one of its own.
MOUNTED: dict[str, str | Sequence[str]] = {
    "mount": ["/a=app.py", "/shop=learning.py"],
    "manage-script-name": "true",
}


def visit(server: Server, *paths: str) -> list[bytes]:
    """The answers; return when they are on the board. A worker of uWSGI's notes after
    it has answered, and what others asked while it loaded may still wait in its
    queue."""
    board = open_board(server.pid)

    def noted() -> Counter[str]:
        found: Counter[str] = Counter()
        for each in served.read(board):
            found[plain_shape(each.path)] += each.count
        return found

    wanted = noted() + Counter(map(plain_shape, paths))
    answers = [server.get(path) for path in paths]
    assert {status for status, _ in answers} == {200}
    wait_until(lambda: wanted <= noted(), 20, "the notes")
    return [body for _, body in answers]


def learned(file: Path) -> dict[str, int]:
    """How often each path was requested, by any host: each server has another port."""
    kept = parse(file.read_bytes())
    assert not kept.refused
    counts: dict[str, int] = {}
    for each in kept.learned:
        counts[each.path] = counts.get(each.path, 0) + each.count
    return counts


def stop(server: Server) -> None:
    server.signal(signal.SIGTERM)
    server.wait_exit()


@pytest.mark.each_python
@pytest.mark.parametrize(
    ("host", "options", "mount"),
    [
        ("sync", {"cow-warmup": "auto"}, ""),
        # With interpreters of their own, the only way to learn from traffic.
        ("uwsgi", MOUNTED, "/shop"),
        pytest.param("uwsgi", {"cow-immortal": "off"}, "", marks=pytest.mark.deep),
        pytest.param("asgi", {}, "", marks=pytest.mark.deep),
    ],
    ids=["sync", "several-interpreters", "uwsgi", "asgi"],
)
def test_what_visitors_requested_is_warm_at_the_next_start_before_any_request(
    servers: Servers, tmp_path: Path, host: str, options: dict[str, str], mount: str
) -> None:
    file = tmp_path / "warm"
    # A login of the operator's is not for paths that visitors chose: the page refuses.
    options = {
        **options,
        "cow-warmup-file": str(file),
        "cow-warmup-header": "Cookie: sessionid=x",
    }
    app = "" if mount else "learning"
    kinds = f"{mount}/kind"
    first = servers.on(host, options, workers=1, app=app).wait_serving(f"{mount}/")
    visit(first, *(f"{kinds}/{each}" for each in ("a/1", "a/2", "b/1", "cron/1")))
    assert "warmup file pages=0 " in first.log
    stop(first)
    assert file.stat().st_mode & 0o777 == 0o600
    assert learned(file)[f"{kinds}/a/1"] == 2
    assert set(learned(file)) == {f"{mount}/", f"{kinds}/a/1", f"{kinds}/b/1"}
    second = servers.on(host, options, workers=1, app=app).wait_serving(f"{mount}/")
    assert "cow: warmup file pages=3 warmed=3 dropped=0 left-out=0 " in second.log
    for body in visit(second, f"{kinds}/a/7", f"{kinds}/b/7"):
        pid, maker, _ = body.split()
        assert int(maker) == second.pid
        assert int(pid) in second.workers()
    assert "/kind/" not in second.log  # what was requested is nobody's business
    stop(second)
    counts = learned(file)
    assert counts.pop(f"{mount}/") >= 2  # while it loads, uWSGI queues what asks
    assert counts == {
        f"{kinds}/a/1": 2,
        f"{kinds}/a/7": 1,
        f"{kinds}/b/1": 1,
        f"{kinds}/b/7": 1,
    }
    assert re.search("Traceback|cow: warmup-file=", first.log + second.log) is None


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_damaged_file_ends_no_start_and_is_left_alone(
    servers: Servers, tmp_path: Path, host: str
) -> None:
    file = tmp_path / "warm"
    file.write_bytes(b"\x00\xff damaged" * 99)
    options = {"cow-warmup-file": "warm", "chdir": str(tmp_path)}
    environ = {"PYTHONPATH": str(Path(__file__).parent.parent / "programs")}
    server = servers.on(host, options, workers=1, app="learning", environ=environ)
    server.wait_serving()
    visit(server, "/kind/a/1")
    stop(server)
    line = f"cow: warmup-file={file}: is no warm-up file; name another, or remove it"
    assert server.log.count(line) == 1
    assert file.read_bytes() == b"\x00\xff damaged" * 99


@pytest.mark.parametrize(
    "host",
    [
        "sync",
        *(pytest.param(each, marks=pytest.mark.deep) for each in ("asgi", "uwsgi")),
    ],
)
def test_a_page_that_no_server_would_catch_is_dropped_and_the_server_starts(
    servers: Servers, tmp_path: Path, host: str
) -> None:
    """asyncio's CancelledError is no Exception; it ended the start. And a page of 8 KB
    beside it, which no server takes unless it is told to, is warmed."""
    file = tmp_path / "warm"
    long = f"/kind/{'l' * 8186}/1"
    lines = [b"/kind/leap/1", b"/kind/a/1", long.encode()]
    file.write_bytes(compose("", lines, []))
    file.chmod(0o600)
    options = {"cow-warmup-file": str(file)}
    if host == "uwsgi":
        options["buffer-size"] = "65535"
    else:
        options["limit-request-line"] = "0"
    environ = {"LEAP": "master"}
    server = servers.on(host, options, workers=1, app="learning", environ=environ)
    server.wait_serving()
    assert "asked trial leap" in server.log
    assert "asked master leap" in server.log
    assert "cow: warmup file pages=1 dropped: raised CancelledError" in server.log
    for path in ("/kind/a/7", long):
        assert int(server.get(path)[1].split()[1]) == server.pid
    assert long not in server.log
    stop(server)
    assert set(lines) <= set(parse(file.read_bytes()).own)


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_file_is_written_while_the_server_runs_and_at_a_reload(
    servers: Servers, tmp_path: Path, host: str
) -> None:
    """A server that is killed has not learned in vain."""
    file = tmp_path / "warm"
    options = {**QUICK, "cow-check-interval": "0.05", "cow-warmup-file": str(file)}
    server = servers.on(host, options, workers=1, app="learning").wait_serving()
    visit(server, "/kind/a/1")
    wait_until(file.exists, 30, "the file")
    assert "/kind/a/1" in learned(file)
    visit(server, "/kind/b/1")
    server.signal(signal.SIGHUP)
    wait_until(lambda: "/kind/b/1" in learned(file), 30, "the page")
    # What the reload has not taken in hand, the end must not lose.
    server.wait_serving("/kind/c/1")
    stop(server)
    assert learned(file)["/kind/a/1"] == 1


def test_two_masters_of_one_server_add_to_one_file(
    servers: Servers, tmp_path: Path
) -> None:
    """USR2: the old master goes when the new one serves."""
    file, pidfile = tmp_path / "warm", tmp_path / "pid"
    options = {"cow-warmup-file": str(file), "pid": str(pidfile)}
    old = servers.on("sync", options, workers=1, app="learning").wait_serving()
    visit(old, "/kind/a/1")
    old.signal(signal.SIGUSR2)
    fresh = Path(f"{pidfile}.2")
    wait_until(fresh.exists, 30, "the new master")
    wait_until(lambda: old.log.count("Booting worker") == 2, 30, "its worker")
    new = int(fresh.read_text())
    try:
        old.signal(signal.SIGTERM)
        old.wait_exit()
        assert set(learned(file)) == {"/", "/kind/a/1"}
        board = open_board(new)
        assert old.get("/kind/b/1")[0] == 200
        wait_until(lambda: served.noted(board) >= 1, 20, "the note")
        os.kill(new, signal.SIGTERM)
        wait_until(lambda: not alive(new), 30, "its end")
    finally:
        for pid in filter(alive, (*children(new), new)):
            os.kill(pid, signal.SIGKILL)
    assert set(learned(file)) == {"/", "/kind/a/1", "/kind/b/1"}
