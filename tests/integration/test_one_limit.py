"""One limit for a whole server, on real servers, against what the kernel says."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from conftest import QUICK, Servers, deep
from harness.groups import memory_group
from harness.load import Load
from harness.processes import wait_until
from harness.server import Server

from cowpreload import _core
from cowpreload.board import Board, open_board
from cowpreload.capacity import capacity
from cowpreload.errors import NativeError

MIB = 1 << 20
LINE = re.compile(
    r"cow: worker=(\d+) gen=(\d+) pid=(\d+) recycled private=(\d+)MiB "
    r"budget=(\d+)MiB total=(\d+)MiB age=\d+s"
)
NUMBER = 20_000


def ends(server: Server) -> list[tuple[int, ...]]:
    """The recycling lines: slot, generation, pid, private, budget, total."""
    return [tuple(map(int, each)) for each in LINE.findall(server.log)]


def taken(server: Server) -> int:
    """PSS of the master and all of its workers, read one after the other, now."""
    found = 0
    for pid in (server.pid, *server.workers()):
        try:
            found += _core.take_reading(pid).pss
        except NativeError:
            continue  # it has left meanwhile
    return found


def counted(board: Board) -> int:
    """What the server itself holds against its budget."""
    found = _core.ffi.new("struct cow_sum *")
    _core.lib.cow_budget_sum(board.raw, _core.lib.cow_now_ms(), found)
    return int(found.total)


def states(board: Board) -> list[str]:
    """Of all workers at one moment: a test waits long between two of them."""
    before: list[tuple[int, str]] = []
    while True:
        now = [(each.generation, each.state) for each in board]
        if now == before:
            return [state for _, state in now]
        before = now


def sum_is_right(path: str, status: int, body: bytes) -> bool:
    return status == 200 and body == str(sum(range(NUMBER))).encode()


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi", "threaded", "asgi")])
def test_over_the_budget_the_largest_goes_one_at_a_time_and_no_request_is_lost(
    servers: Servers, host: str
) -> None:
    budget = 110 * MIB
    options = {**QUICK, "cow-budget": "110M", "cow-max-recycling": "3"}
    server = servers.on(host, options, workers=4).wait_serving(workers=4)
    board = open_board(server.pid)
    wait_until(lambda: states(board) == ["ready"] * 4, 20, "all ready")
    grow = f"/growsum?n={NUMBER}&mb=2"
    load = Load(server.port, [grow], seconds=90, pause=0.2, check=sum_is_right)
    load.start()
    longest, since, leaving, least = 0.0, 0.0, 0, 4
    try:
        while len(ends(server)) < 3:
            now, found = time.monotonic(), states(board)
            leaving = max(leaving, found.count("leaving"))
            least = min(least, found.count("ready"))
            since = (since or now) if taken(server) > budget else 0.0
            longest = max(longest, now - since if since else 0.0)
            assert not load.over
            time.sleep(0.03)
    finally:
        report = load.stop()
    print(f"{host}: over for {longest:.2f} s at most, {least} of 4 ready at least")
    wait_until(lambda: taken(server) < budget, 20, "below the budget")
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]
    assert leaving <= 1
    assert least >= 3
    assert all(each[4] == 110 <= each[5] for each in ends(server))


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
def test_the_sum_on_the_board_is_what_the_kernel_says(
    servers: Servers, host: str
) -> None:
    """Readings are of different moments, and of different numbers of processes."""
    options = {**QUICK, "cow-budget": "100G"}
    server = servers.on(host, options, workers=4, environ={"HEAP_MB": "40"})
    server.wait_serving(workers=4)
    board = open_board(server.pid)
    for _ in range(20):
        server.get("/me")
    server.get("/grow?mb=30")
    wait_until(lambda: board.raw.whole.read_at_ms, 20, "the master's reading")

    def grown() -> list[int]:
        return [each.pid for each in board if each.private > 30 * MIB]

    def is_near() -> bool:
        return abs(counted(board) / taken(server) - 1) < 0.05

    wait_until(grown, 20, "the reading of the one that has grown")
    wait_until(is_near, 20, f"{counted(board)} near {taken(server)}")
    # Nobody is read again, and the PSS of all others rises.
    (pid,) = grown()
    os.kill(pid, signal.SIGTERM)
    wait_until(
        lambda: (
            {each.state for each in board} == {"ready"}
            and pid not in [each.pid for each in board]
        ),
        20,
        "a new worker",
    )
    wait_until(is_near, 2, "near again")


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
def test_a_budget_below_what_is_possible_is_said_once_and_nobody_recycled(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, {**QUICK, "cow-budget": "10M"}).wait_serving(workers=2)
    first = server.workers()
    line = server.wait_log("fresh workers would exceed it, too")
    assert re.search(
        r"cow: budget=10MiB total=\d+MiB workers=2 fresh=\d+MiB fits=0: ", line
    )
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        assert server.get("/grow?mb=1")[0] == 200
    assert server.workers() == first
    assert server.log.count("would exceed it") == 1


def test_a_reload_lowers_the_budget_of_workers_that_run(
    servers: Servers, tmp_path: Path
) -> None:
    """One that the reload does not replace yet, as it has a request, sees it, too."""
    config = tmp_path / "budget.py"
    quick = "cow_check_interval=0.1\ncow_min_lifetime=0\ncow_jitter=0\ncow_strikes=1\n"
    config.write_text(quick + "cow_budget='1G'\n")
    server = servers.gunicorn(
        "--worker-class", "cow", "--workers", "2", "--config", str(config)
    )
    server.wait_serving(workers=2)
    board = open_board(server.pid)
    assert board.raw.whole.budget == 1024 * MIB
    assert "cow: budget=" not in server.log
    config.write_text(quick + "cow_budget='50%'\n")
    server.signal(signal.SIGHUP)
    line = server.wait_log("cow: budget=")
    assert re.search(r"budget=\d+MiB \(50% of \d+MiB, (machine|/.*)\)", line)
    room = capacity(server.pid)
    wait_until(lambda: board.raw.whole.budget == room.limit // 2, 10, "the new one")


@pytest.mark.parametrize("host", ["uwsgi", *deep("sync")])
def test_in_a_control_group_a_percentage_is_of_its_limit(
    servers: Servers, host: str
) -> None:
    """Which the kernel kills for; here all workers pass it in the same moment."""
    with memory_group(300 * MIB) as made:
        part = "50%%" if host == "uwsgi" else "50%"
        options = {**QUICK, "cow-budget": part, "cow-strikes": "3"}
        options["cow-max-recycling"] = "3"
        with made.holding():
            server = servers.on(host, options, workers=4)
        with server:
            server.wait_serving(workers=4)
            assert "cow: budget=150MiB (50% of 300MiB, /" in server.wait_log("budget=1")
            first, board = set(server.workers()), open_board(server.pid)
            wait_until(
                lambda board=board: states(board) == ["ready"] * 4, 20, "all ready"
            )
            load = Load(
                server.port, ["/hang?s=1&mb=50"], requests=4, seconds=30, pause=0
            ).start()
            most = 0
            while len(ends(server)) < 2:
                most = max(most, states(board).count("leaving"))
                assert not load.over
                time.sleep(0.01)
            assert load.finish().right == 4
            assert most <= 1
            wait_until(lambda: taken(server) < 150 * MIB, 20, "below the budget")
            assert first & set(server.workers()), "all were recycled"
            assert made.kills() == 0
