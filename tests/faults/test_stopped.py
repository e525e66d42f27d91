"""Workers that stand still while the others serve: stopped, frozen, in a C call."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.processes import alive, stat, wait_until
from harness.under_load import LEAKING, ONE_BY_ONE

from cowpreload.board import open_board

FREEZER = Path("/sys/fs/cgroup/freezer")


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """By SIGSTOP, until SIGCONT."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: stat(pid)[:1] in (["T"], []), 30, "the stop")
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """By the freezer of a control group, which no process sees; as in a suspend."""
    group = FREEZER / f"cowpreload-{os.getpid()}"
    group.mkdir()
    state = group / "freezer.state"
    try:
        with contextlib.suppress(ProcessLookupError):  # it left before
            (group / "cgroup.procs").write_text(str(pid))
            state.write_text("FROZEN")
            wait_until(lambda: state.read_text().strip() == "FROZEN", 30, "the frost")
        yield
    finally:
        state.write_text("THAWED")
        for each in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):  # it has ended
                (FREEZER / "cgroup.procs").write_text(each)
        wait_until(
            lambda: not (group / "cgroup.procs").read_text().strip(), 30, "an end"
        )
        group.rmdir()


WAYS = {"stopped": stopped, "frozen": frozen}


def can_freeze() -> bool:
    return (FREEZER / "cgroup.procs").exists() and os.access(FREEZER, os.W_OK)


@pytest.mark.parametrize("way", ["stopped", *full("frozen")])
@pytest.mark.parametrize("host", ["sync", *full("uwsgi", "threaded", "asgi")])
def test_a_worker_that_stands_still_holds_up_neither_the_others_nor_their_recycling(
    servers: Servers, faults: Faults, host: str, way: str
) -> None:
    """Its request waits, and is answered when it goes on."""
    if way == "frozen" and not can_freeze():
        pytest.skip("needs root, and control groups of version 1")
    server = servers.on(host, {**QUICK, **LEAKING}, workers=4)
    server.wait_serving(workers=4)
    with faults.under_load(f"a worker {way}", server, host, workers=4) as under:
        under.settle_in()
        for _ in range(faults.pick(1, 5)):
            with WAYS[way](server.workers()[0]):
                under.recycle(2 * under.workers)


@pytest.mark.faults
@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_worker_that_stands_still_while_it_leaves_keeps_its_right_for_a_while(
    servers: Servers, faults: Faults, host: str
) -> None:
    """The only right to leave; half of the others serve, so it lapses after 10 s."""
    options = {**QUICK, **LEAKING, "cow-max-recycling": "1"}
    server = servers.on(host, options, workers=4)
    server.wait_serving(workers=4)
    with faults.under_load(
        "the one that leaves stopped", server, host, workers=4
    ) as under:
        under.settle_in()
        board = open_board(server.pid)

        def leaving() -> int:
            for each in board:
                if each.state == "leaving" and alive(each.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each.pid, signal.SIGSTOP)
                        if board.view(each.slot).state == "leaving":
                            return each.pid
                        os.kill(each.pid, signal.SIGCONT)
            return 0

        pid = wait_until(leaving, 30, "a worker that leaves")
        try:
            start = time.monotonic()
            under.recycle(1)
            assert time.monotonic() - start < 30
            under.recycle(8)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("host", ["uwsgi", *full("sync", "threaded", "asgi")])
def test_the_hard_limit_ends_a_worker_that_keeps_pythons_lock(
    servers: Servers, faults: Faults, host: str
) -> None:
    """In a C call, as a regular expression without an end is: no signal, no thread."""
    options = {**QUICK, **LEAKING, "cow-max-private-hard": "300M"}
    server = servers.on(host, options, workers=4)
    server.wait_serving(workers=4)
    # Else an asgi worker passes the hard limit while it waits for its turn to leave.
    pause = 0.1 if host == "asgi" else 0.02
    with faults.under_load(
        "a C call with the GIL", server, host, workers=4, pause=pause
    ) as under:
        under.settle_in()
        for _ in range(faults.pick(1, 3)):
            since = time.monotonic()
            with pytest.raises((OSError, http.client.HTTPException)):
                server.get("/hold?mb=400&s=60", timeout=50)
            assert time.monotonic() - since < 40
            most = 0 if host in ONE_BY_ONE else under.clients
            under.explain("the hard limit", most, since)
    assert " killed private=" in server.log
