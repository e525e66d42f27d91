"""A request that asks for more than the control group has: who kills, and whom."""

from __future__ import annotations

import contextlib
import http.client

import pytest
from conftest import Servers, full, ready
from harness.groups import memory_group
from harness.processes import wait_until
from harness.server import Server

from cowpreload.board import open_board

MIB = 1 << 20
WAYS = ("one", "touched", "small", "filled", "slow")
# With as much else to do as processors, one of ten is the kernel's all the same.
TIMES, OURS = 3, 2


@pytest.mark.parametrize("interval", ["1", "0.1"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("host", full("sync", "uwsgi"))
def test_of_three_bursts_two_are_ended_by_the_worker_itself(
    servers: Servers, host: str, way: str, interval: str
) -> None:
    """And none by the end of another process than the one that asked for it."""
    if way == "filled":
        pytest.importorskip("numpy")
    options = {"cow-max-private-hard": "2G", "cow-check-interval": interval}
    with memory_group(600 * MIB) as group:
        try:
            with group.holding():
                server = servers.on(host, options, workers=3, app="bursts")
            ready(server, workers=3)
            for _ in range(TIMES):
                burst(server, way)
            assert group.kills() <= TIMES - OURS
            assert server.log.count(" killed private=") >= OURS
        finally:
            for each in servers.running:
                each.kill()


def burst(server: Server, way: str) -> None:
    board = open_board(server.pid)
    before = {each.slot: each.generation for each in board}
    with contextlib.suppress(OSError, http.client.HTTPException):
        server.get(f"/{way}?mb=2048", timeout=120)
        pytest.fail("it was answered")

    def replaced() -> bool:
        now = {each.slot: each.generation for each in board}
        new = sum(now[slot] != before[slot] for slot in before if slot in now)
        return new == 1 and [each.state for each in board] == ["ready"] * 3

    wait_until(replaced, 30, "one worker, and no other, anew")
    assert server.process.poll() is None
