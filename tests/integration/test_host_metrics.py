"""What the hosts' own instruments show of our workers: statsd, uWSGI's stats server."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import QUICK, Servers, needs_uwsgi, ready
from harness.processes import wait_until
from harness.server import free_port

from cowpreload.board import Board, open_board
from cowpreload.hosts.gunicorn_statsd import Statsd
from cowpreload.settings import Settings

MIB = 1 << 20
LEAKING = {
    **QUICK,
    "cow-max-growth": "40M",
    "cow-max-private": "300M",
    "cow-budget": "10G",
}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Where a statsd server would be."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.05)
        yield udp


def test_statsd_gets_gauges_of_each_slot_and_counters(
    servers: Servers, listener: socket.socket
) -> None:
    seen: dict[str, tuple[str, str]] = {}

    def receive() -> None:
        while True:
            try:
                text = listener.recv(4096).decode()
            except TimeoutError:
                return
            found = re.fullmatch(r"([^:]+):(-?\d+)\|(\w+)(?:\|@1.0)?\|#env:test", text)
            if found and ".cow." in text:
                seen[found[1]] = (found[2], found[3])

    def is_there(name: str) -> bool:
        receive()
        return name in seen

    address = f"127.0.0.1:{listener.getsockname()[1]}"
    given = {
        "statsd-host": address,
        "statsd-prefix": "shop",
        "dogstatsd-tags": "env:test",
    }
    server = servers.on("sync", {**LEAKING, **given})
    ready(server, 2)
    workers = "shop.gunicorn.cow.workers"
    last = "shop.gunicorn.cow.workers_pss_bytes"
    wait_until(
        lambda: is_there(last) and seen[workers] == ("2", "g"), 30, "gauges of both"
    )
    assert seen["shop.gunicorn.cow.budget_bytes"] == (str(10240 * MIB), "g")
    view = open_board(server.pid).view(1)
    for name in ("private", "shared"):
        shown = int(seen[f"shop.gunicorn.cow.worker.1.{name}_bytes"][0])
        assert abs(shown - getattr(view, name)) < 4 * MIB
    assert server.get("/grow?mb=80")[0] == 200
    recycled = "shop.gunicorn.cow.recycled.max_growth"
    wait_until(lambda: is_there(recycled), 30, "the counter")
    assert seen[recycled] == ("1", "c")


def test_a_statsd_agent_that_reads_nothing_does_not_hold_the_master(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its counters come later; one that is gone makes no line of the log."""
    pytest.importorskip("gunicorn")
    from gunicorn.config import Config
    from gunicorn.instrument.statsd import Statsd as Client

    def interrupt(number: int, frame: object) -> None:
        pytest.fail("the master waits")  # no Exception: gunicorn would drop it

    board = Board.create()
    board.reserve()
    path, ours, settings = tmp_path / "agent", Statsd(), Settings(check_interval=0)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(10)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
            agent.bind(str(path))
            agent.setblocking(False)
            cfg = Config()
            cfg.set("statsd_host", f"unix://{path}")
            master = SimpleNamespace(cfg=cfg, log=Client(cfg))
            theirs = master.log.sock
            for _ in range(100):  # the kernel keeps 10 datagrams, or some hundreds
                ours.turn(master, board, settings)
            board.raw.counts.ends[1][1] = 1
            ours.turn(master, board, settings)
            assert master.log.sock is theirs
            with contextlib.suppress(BlockingIOError):
                while True:
                    assert b"recycled" not in agent.recv(4096)
            ours.turn(master, board, settings)
            got = agent.recv(4096)
            with contextlib.suppress(BlockingIOError):
                while True:
                    got += agent.recv(4096)
            assert b"gunicorn.cow.recycled.max_private:1|c" in got
        ours.turn(master, board, settings)
        assert not capsys.readouterr().err
        theirs.close()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@needs_uwsgi
def test_uwsgis_stats_server_shows_what_the_board_has(servers: Servers) -> None:
    port = free_port()
    ini = {"stats": f"127.0.0.1:{port}", "enable-metrics": "true"}
    server = servers.on("uwsgi", {**LEAKING, **ini})
    ready(server, 2)

    def metrics() -> dict[str, int]:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as tcp:
            text = b"".join(iter(lambda: tcp.recv(65536), b""))
        found = json.loads(text)["metrics"]
        return {name: each["value"] for name, each in found.items()}

    board = open_board(server.pid)

    def off(shown: dict[str, int]) -> list[str]:
        """What is not as the board has it; it was collected a second ago."""
        return [
            f"worker.{slot}.cow_{name}"
            for slot in (1, 2)
            for name in ("private", "shared", "pss")
            for value in [shown[f"worker.{slot}.cow_{name}"]]
            if abs(value - getattr(board.view(slot), name)) >= 4 * MIB
            or not shown[f"worker.{slot}.cow_shared"]
        ]

    wait_until(lambda: not off(metrics()), 30, "what the board has")
    shown = metrics()
    for slot in (1, 2):
        assert shown[f"worker.{slot}.cow_generation"] == 1
        assert shown[f"worker.{slot}.cow_max_private"] == 300 * MIB
    sums = shown["worker.1.cow_private"] + shown["worker.2.cow_private"]
    assert abs(shown["core.cow_private"] - sums) < 4 * MIB
    assert shown["core.cow_recycled"] == 0
    assert shown["core.cow_budget"] == 10240 * MIB
    assert server.get("/grow?mb=80")[0] == 200
    wait_until(lambda: metrics()["core.cow_recycled"] == 1, 30, "the counter")
    assert metrics()["core.cow_killed"] == 0
