"""Reloads of uWSGI in all its ways, while its workers are recycled."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import QUICK, Servers, full, needs_uwsgi
from fault_table import Faults
from harness.load import is_sum
from harness.processes import alive, wait_until
from harness.server import Server
from harness.under_load import GROWING, LEAKING, UnderLoad

pytestmark = needs_uwsgi
WORKERS = 3
BRUTAL = "SIGQUIT, a brutal reload"  # with die-on-term
TOUCHED = ("touch-reload", "touch-chain-reload", "touch-workers-reload")


def leaking(servers: Servers, **more: str) -> Server:
    """With a FIFO for orders, and a file to touch for each kind of reload."""
    directory = servers.directory
    for name in TOUCHED:
        (directory / name).touch()
    files = {name: str(directory / name) for name in TOUCHED}
    ini = {**QUICK, **LEAKING, **files, "master-fifo": str(directory / "orders")}
    ini |= {"worker-reload-mercy": "10", **more}
    return servers.on("uwsgi", ini, workers=WORKERS).wait_serving(
        workers=int(more.get("cheaper-initial", WORKERS))
    )


def by_signal(number: int) -> Callable[[UnderLoad, Path], None]:
    return lambda under, directory: under.server.signal(number)


def by_touch(name: str) -> Callable[[UnderLoad, Path], None]:
    def touch(under: UnderLoad, directory: Path) -> None:
        # A second is what uWSGI compares.
        later = time.time() + 5
        last = (directory / name).stat().st_mtime
        os.utime(directory / name, (later, max(later, last + 5)))

    return touch


def by_order(letter: str) -> Callable[[UnderLoad, Path], None]:
    def order(under: UnderLoad, directory: Path) -> None:
        (directory / "orders").write_text(letter)

    return order


HERE = "chain reload (FIFO)"
WAYS = {
    "SIGHUP": by_signal(signal.SIGHUP),
    BRUTAL: by_signal(signal.SIGQUIT),
    HERE: by_order("c"),
    "reload (FIFO)": by_order("r"),
    "workers' reload (FIFO)": by_order("w"),
    **{name: by_touch(name) for name in TOUCHED},
}


@pytest.mark.parametrize("way", [HERE, *full(*(way for way in WAYS if way != HERE))])
def test_a_reload_loses_nothing_and_recycling_keeps_its_pace(
    servers: Servers, faults: Faults, way: str
) -> None:
    server = leaking(servers)
    with faults.under_load(way, server, "uwsgi", workers=WORKERS) as under:
        under.settle_in()
        for _ in range(faults.pick(1, 4)):
            before, since = server.workers(), time.monotonic()
            WAYS[way](under, servers.directory)
            wait_until(
                lambda before=before: not any(map(alive, before)), 60, "new workers"
            )
            if way == BRUTAL:
                under.explain("what the workers had", WORKERS, since)
            # A signal before the master is back in its loop kills uWSGI's master, with
            # and without us; its workers serve earlier. It logs recyclings there.
            server.wait_serving(workers=WORKERS)
            under.recycle(1)


def is_right(path: str, status: int, body: bytes) -> bool:
    if path.startswith("/hang"):
        return (status, body) == (200, b"woken")
    return is_sum(path, status, body)


@pytest.mark.parametrize("algorithm", full("spare", "busyness"))
def test_workers_that_come_and_go_lose_nothing(
    servers: Servers, faults: Faults, algorithm: str
) -> None:
    """cheaper: from one worker to four under load, and back."""
    more = {"cheaper": "1", "cheaper-initial": "1", "processes": "4"}
    more |= {"cheaper-algo": algorithm, "cheaper-overload": "1"}
    server = leaking(servers, **more)
    # "spare" wants to see all workers busy when it looks, once a second.
    busy = [each for grows in GROWING for each in (grows, "/hang?s=0.4")]
    with faults.under_load(
        f"cheaper {algorithm}",
        server,
        "uwsgi",
        workers=1,
        paths=busy,
        check=is_right,
        clients=6,
        pause=0.001,
    ) as under:
        under.settle_in()
        end = time.monotonic() + 20
        most = 0
        while time.monotonic() < end:
            most = max(most, len(server.workers()))
            time.sleep(0.1)
        assert most > 1, "never more than one worker"
        # A worker that cheaper lets go while it leaves keeps its right to leave, which
        # lapses after ten seconds, when another wants it.
        under.tickets = 1


@pytest.mark.parametrize("order", ["SIGTERM", "SIGINT", "q"])
@pytest.mark.parametrize("moment", full("recycling", "reload"))
def test_an_end_in_the_middle_of_everything_leaves_nothing(
    servers: Servers, faults: Faults, moment: str, order: str
) -> None:
    chosen = random.Random(order)
    for _ in range(3):
        server = leaking(servers)
        with faults.under_load(
            f"{order} in a {moment}", server, "uwsgi", workers=WORKERS
        ) as under:
            under.recycle(2)
            if moment == "reload":
                by_order("c")(under, servers.directory)
            time.sleep(chosen.random() / 2)
            under.kill(chosen.choice(server.workers()))
            since = time.monotonic()
            if order == "q":
                by_order("q")(under, servers.directory)
            else:
                server.signal(getattr(signal, order))
            assert server.wait_exit(40) in (0, 30)
            # All of them but `q` are brutal by name: uWSGI kills what does not wait.
            under.stopped("the end of the server", since, ("refused", "reset", "cut"))
