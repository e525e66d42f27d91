"""The board overwritten while the server serves: by a stray write of an application's.

It is mapped in every worker. Random bytes, by a fixed seed; all of it, or what verdicts
and the master's turns are made with.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.processes import wait_until
from harness.under_load import LEAKING

from cowpreload._core import ffi
from cowpreload.board import Board, open_board
from cowpreload.errors import NativeError, NotFoundError

SEED = 12
Bytes = Callable[[int], bytes]
BYTES: dict[str, Bytes] = {
    "random": random.Random(SEED).randbytes,
    "ones": lambda count: b"\xff" * count,
    "zeros": bytes,
}


def parts(board: Board, what: str) -> list[tuple[int, int]]:
    """Offset and size of what is overwritten."""
    size = ffi.sizeof("struct cow_board")
    if what == "board":
        return [(0, size)]
    each = ffi.sizeof(f"struct cow_{what}")
    first = ffi.offsetof("struct cow_board", what)
    return [(first + (slot - 1) * each, each) for slot in board.slots()]


def overwrite(board: Board, what: str, made: Bytes) -> None:
    whole = ffi.buffer(board.raw, ffi.sizeof("struct cow_board"))
    for offset, size in parts(board, what):
        whole[offset : offset + size] = made(size)


def readers(pid: int) -> list[list[str]]:
    """What an operator could ask meanwhile."""
    return [
        ["status", str(pid)],
        ["status", "--json", str(pid)],
        ["exporter", "--once"],
        ["record", str(pid), "--output", "-", "--interval", "0.1", "--for", "0.3"],
        ["warmup", str(pid)],
        ["doctor"],
    ]


def ask(command: list[str]) -> None:
    """None may hang, or end in a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "cowpreload", *command],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr, f"{command}: {done.stderr}"
    assert done.returncode in (0, 1, 2), f"{command}: {done.returncode} {done.stderr}"


def found(pid: int) -> bool:
    try:
        return open_board(pid).master_pid == pid
    except (NativeError, NotFoundError):
        return False


@pytest.mark.parametrize(
    ("host", "what", "made"),
    [
        ("uwsgi", "board", "random"),
        *full(("sync", "board", "random")),
        *full(("threaded", "board", "random"), ("asgi", "board", "random")),
        *full(("sync", "board", "ones"), ("uwsgi", "board", "ones")),
        *full(("sync", "board", "zeros"), ("uwsgi", "board", "zeros")),
        *full(("sync", "slot", "random"), ("uwsgi", "slot", "ones")),
        *full(("sync", "end", "random"), ("uwsgi", "end", "random")),
    ],
)
def test_an_overwritten_board_ends_no_process_and_recycling_goes_on(
    servers: Servers, faults: Faults, host: str, what: str, made: str
) -> None:
    """uWSGI ended, exit code 22; on gunicorn all workers left at once. Others were
    never recycled again."""
    server = servers.on(host, {**QUICK, **LEAKING}, workers=4)
    server.wait_serving(workers=4)
    with faults.under_load(
        f"{what} of {made} bytes (seed {SEED})", server, host, workers=4
    ) as under:
        under.settle_in()
        board: Any = open_board(server.pid, writable=True)
        for _ in range(faults.pick(1, 3)):
            overwrite(board, what, BYTES[made])
            under.recycle(2)
        overwrite(board, what, BYTES[made])
        for command in readers(server.pid) if faults.full and host == "sync" else []:
            ask(command)
        wait_until(lambda: found(server.pid), 30, "a board that says whose it is")
        assert server.log.count("cow: worker=") < 30 + 4 * server.log.count("recycled")


@pytest.mark.parametrize("host", full("sync", "uwsgi"))
def test_an_overwritten_board_does_not_have_a_budget_recycle_for_ever(
    servers: Servers, faults: Faults, host: str
) -> None:
    """What all workers take is added up on it; theirs is far below the budget."""
    options = {**QUICK, "cow-budget": "2G", "cow-max-recycling": "2"}
    server = servers.on(host, options, workers=4)
    server.wait_serving(workers=4)
    paths = [f"/sum?n={number}" for number in range(1000, 1100)]
    with faults.under_load(
        f"board of random bytes, budget (seed {SEED})",
        server,
        host,
        workers=4,
        paths=paths,
    ) as under:
        board: Any = open_board(server.pid, writable=True)
        for _ in range(5):
            overwrite(board, "board", BYTES["random"])
            wait_until(lambda: found(server.pid), 30, "a board that says whose it is")
        under.before = None  # taken before the master's first recycling
        workers, seen = server.workers(), under.recyclings
        served = under.load.report.right
        wait_until(
            lambda: under.load.report.right > served + 500, 60, "five hundred answers"
        )
        assert under.recyclings <= seen + 4
        assert (
            len(set(workers) & set(server.workers())) >= 2 or under.recyclings == seen
        )
