"""A budget of the whole server under load: all workers over it at once, and changes.

Their short forms are in integration/test_one_limit.py.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import QUICK, Servers, full, ready
from fault_table import Faults
from harness.processes import wait_until
from harness.server import Server

from cowpreload import _core
from cowpreload.board import open_board
from cowpreload.errors import NativeError

MIB = 1 << 20
WORKERS = 4
# About 50 MiB a second in all: the largest that leaves gives back more than comes
# meanwhile.
SLOWLY = [f"/growsum?n={number}&mb=1" for number in range(1000, 1100)]
LOAD = {"workers": WORKERS, "paths": SLOWLY, "pause": 0.08}


def taken(server: Server) -> int:
    """PSS of master and workers, as the kernel says."""
    found = 0
    for pid in (server.pid, *server.workers()):
        with contextlib.suppress(NativeError):  # it has left meanwhile
            found += _core.take_reading(pid).pss
    return found


def pass_at_once(server: Server, mb: int) -> None:
    """Each of as many requests as there are workers grows the one that it meets."""

    def grow() -> None:
        with contextlib.suppress(OSError):
            server.get(f"/hang?s=0.5&mb={mb}")

    threads = [threading.Thread(target=grow) for _ in range(WORKERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


@pytest.mark.parametrize("host", full("sync", "uwsgi", "threaded", "asgi"))
def test_all_workers_over_the_budget_at_once_leave_one_by_one(
    servers: Servers, faults: Faults, host: str
) -> None:
    options = {**QUICK, "cow-budget": "200M", "cow-max-recycling": "3"}
    server = servers.on(host, options, workers=WORKERS)
    ready(server, WORKERS)
    board, times, least = open_board(server.pid), [], WORKERS
    with faults.under_load("all over the budget at once", server, host, **LOAD) as it:
        it.settle_in()
        for _ in range(faults.pick(1, 6)):
            pass_at_once(server, 60)
            began = time.monotonic()
            while taken(server) > 200 * MIB:
                least = min(least, sum(each.state == "ready" for each in board))
                assert time.monotonic() - began < 60, server.log
                time.sleep(0.02)
            times.append(time.monotonic() - began)
    print(
        f"{host}: below again after {max(times):.2f} s at most, {least} ready at least"
    )


@pytest.mark.parametrize("host", full("sync", "threaded", "asgi"))
def test_a_budget_lowered_and_raised_by_reloads_acts_at_once(
    servers: Servers, faults: Faults, host: str, tmp_path: Path
) -> None:
    """Below what fresh workers need it recycles nobody; then all is as before."""
    given = "\n".join(
        f"{key.replace('-', '_')} = {value!r}" for key, value in QUICK.items()
    )
    config = tmp_path / "budget.py"
    config.write_text(f"{given}\ncow_budget = '200M'\n")
    server = servers.on(host, {"config": str(config)}, workers=WORKERS)
    ready(server, WORKERS)
    board = open_board(server.pid)
    with faults.under_load("budget changed by SIGHUP", server, host, **LOAD) as it:
        it.settle_in()
        for _ in range(faults.pick(1, 4)):
            said = server.log.count("would exceed it, too")
            for budget in ("5M", "200M"):
                config.write_text(f"{given}\ncow_budget = '{budget}'\n")
                server.signal(signal.SIGHUP)
                # Two signals that come together are one.
                size = int(budget[:-1]) * MIB
                wait_until(lambda size=size: board.raw.whole.budget == size, 30, budget)
                if budget == "5M":
                    wait_until(
                        lambda said=said: (
                            server.log.count("would exceed it, too") > said
                        ),
                        30,
                        "the line on the budget",
                    )
