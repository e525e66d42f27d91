"""Memory that runs short in a real control group: who leaves, and who kills whom."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import QUICK, Servers, deep, ready
from harness.groups import Group, memory_group
from harness.load import Load
from harness.processes import alive, wait_until
from harness.server import Server

from cowpreload.board import open_board

MIB = 1 << 20
ROOM = re.compile(
    r"worker=(\d+) gen=(\d+) pid=\d+ (\w+) private=(\d+)MiB room=(\d+)MiB "
)


HOLD = "held = bytearray(b'x') * (300 << 20); print(1, flush=True); input()"


@pytest.fixture
def group(servers: Servers) -> Iterator[Group]:
    """Version 1: version 2 differs in the names of files alone (unit/)."""
    with memory_group(600 * MIB) as made:
        try:
            yield made
        finally:
            for each in servers.running:
                each.kill()


@pytest.fixture
def others(group: Group) -> Iterator[None]:
    """Another process of the group, with 300 MiB: a sixteenth of it all is 20 or so."""
    command = [sys.executable, "-c", HOLD]
    with group.holding():
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    with process:
        assert process.stdout is not None
        process.stdout.read(1)
        try:
            yield
        finally:
            process.kill()


def start(
    servers: Servers, group: Group, host: str, options: dict[str, str], app: str = "app"
) -> Server:
    """Three workers, in the group."""
    with group.holding():
        server = servers.on(host, options, workers=3, app=app)
    return ready(server, workers=3)


def left_for_room(server: Server) -> list[tuple[str, ...]]:
    return ROOM.findall(server.log)


def used(group: Group) -> int:
    """As the kernel counts before it kills: pages of files left out."""
    stat = (group.path / "memory.stat").read_text().split()
    figures = dict(zip(stat[::2], map(int, stat[1::2]), strict=True))
    files = figures["total_active_file"] + figures["total_inactive_file"]
    return int((group.path / "memory.usage_in_bytes").read_text()) - files


def cap(group: Group, limit: int) -> None:
    (group.path / "memory.limit_in_bytes").write_text(str(limit))


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])


def fill(server: Server, group: Group, left: int) -> None:
    """Let others leave this much: the limit comes down, memory stays."""
    server.get("/")  # what this moment needs is there
    cap(group, used(group) + left)


@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("threaded", "asgi", "gevent")])
def test_a_grown_worker_leaves_when_memory_runs_short(
    servers: Servers, group: Group, others: None, host: str
) -> None:
    """One, with what it gives back; those that have nothing to give stay."""
    options = {**QUICK, "cow-max-recycling": "3"}
    server = start(servers, group, host, options)
    server.get("/grow?mb=50")
    board = open_board(server.pid)
    grown = max(server.workers(), key=resident)
    load = Load(server.port, ["/sum?n=99"], seconds=60, concurrency=2).start()
    try:
        fill(server, group, 15 * MIB)
        wait_until(lambda: not alive(grown), 20, "its end")
        wait_until(lambda: [each.state for each in board] == ["ready"] * 3, 20, "ready")
        time.sleep(1)  # ten looks: no other is to follow
    finally:
        report = load.stop()
    ((_, generation, action, private, room),) = left_for_room(server)
    assert (generation, action) == ("1", "recycled")
    assert int(private) > 40
    assert int(room) < 40
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]
    assert report.right > 20
    assert group.kills() == 0


@pytest.mark.parametrize(("host", "seconds"), [("sync", 8), *deep(("uwsgi", 45))])
def test_pressure_of_others_recycles_no_worker_for_ever(
    servers: Servers, group: Group, others: None, host: str, seconds: int
) -> None:
    """They take at once what a worker gives back, and the workers grow again.

    A slot waits 20 s after the first time, 40 s after the second.
    """
    server = start(servers, group, host, QUICK)
    load = Load(
        server.port, ["/grow?mb=3"], seconds=seconds, concurrency=2, pause=0.3
    ).start()
    while not load.over:
        with contextlib.suppress(OSError):  # busy: it is tried again
            fill(server, group, 18 * MIB)
        time.sleep(0.05)
    report = load.finish()
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]
    times = [int(slot) for slot, *_ in left_for_room(server)]
    most = 1 if seconds < 20 else 3
    assert times
    assert max(map(times.count, times)) <= most
    assert group.kills() == 0


@pytest.mark.parametrize(
    ("host", "way"),
    [("sync", "small"), *deep(("uwsgi", "one"), ("uwsgi", "small"), ("sync", "slow"))],
)
def test_a_runaway_is_killed_by_name_before_the_kernel_kills(
    servers: Servers, group: Group, host: str, way: str
) -> None:
    """At the default interval; its hard limit is far above what is left.

    On a machine with thirty busy processes the kernel was first in one of six: no
    thread of ours had its turn. So up to three times.
    """
    options = {"cow-max-private-hard": "2G"}
    server = start(servers, group, host, options, app="bursts")
    for times in range(1, 4):
        workers = set(server.workers())
        with contextlib.suppress(OSError, http.client.HTTPException):
            server.get(f"/{way}?mb=2048")
            pytest.fail("it was answered")
        wait_until(lambda before=workers: before - set(server.workers()), 20, "its end")
        assert len(workers - set(server.workers())) == 1
        ready(server, workers=3)
        if group.kills() < times:
            break
    line = server.wait_log(" killed private=")
    assert re.search(r"killed private=\d+MiB room=\d+MiB age=", line)
    assert server.get("/")[0] == 200
