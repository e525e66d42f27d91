"""Signals to gunicorn's master while its workers are recycled."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.load import is_sum
from harness.processes import alive, children, wait_until
from harness.server import Server
from harness.under_load import GROWING, LEAKING, UnderLoad

KEEP = {"threaded": 2, "asgi": 2}
WORKERS = 3


def leaking(servers: Servers, host: str) -> Server:
    options = {**QUICK, **LEAKING, "graceful-timeout": "10"}
    return servers.on(host, options, workers=WORKERS).wait_serving(workers=WORKERS)


def reload(under: UnderLoad) -> None:
    """Return when no worker of before is left."""
    before = under.server.workers()
    under.server.signal(signal.SIGHUP)
    wait_until(lambda: not any(map(alive, before)), 40, "new workers")


def storm(under: UnderLoad, count: int) -> None:
    """HUP before the last one is over."""
    for _ in range(count):
        under.server.signal(signal.SIGHUP)
        time.sleep(0.1)
    reload(under)


def reopen(under: UnderLoad, count: int) -> None:
    for _ in range(count):
        under.server.signal(signal.SIGUSR1)
        time.sleep(0.1)


def more_and_fewer(under: UnderLoad, count: int) -> None:
    """Never fewer than one; as many at the end as before."""
    for _ in range(count):
        for name in ("ttin", "ttou", "ttou", "ttin"):
            line = f"Handling signal: {name}"
            handled = under.server.log.count(line)
            under.server.signal(getattr(signal, f"SIG{name.upper()}"))
            # Of two that are pending, the kernel gives one.
            wait_until(
                lambda line=line, handled=handled: (
                    under.server.log.count(line) > handled
                ),
                20,
                line,
            )


DONE = {
    "HUP": lambda under, full: [reload(under) for _ in range(5 if full else 1)],
    "HUP storm": lambda under, full: storm(under, 20 if full else 5),
    "USR1": lambda under, full: reopen(under, 20),
    "TTIN and TTOU": lambda under, full: more_and_fewer(under, 10),
}


@pytest.mark.parametrize(
    ("host", "fault"),
    [
        ("sync", "HUP storm"),
        *full(*(("sync", fault) for fault in DONE if fault != "HUP storm")),
        *full(*((host, fault) for host in ("threaded", "asgi") for fault in DONE)),
    ],
)
def test_a_signal_to_the_master_loses_nothing_and_recycling_keeps_its_pace(
    servers: Servers, faults: Faults, host: str, fault: str
) -> None:
    server = leaking(servers, host)
    with faults.under_load(
        fault, server, host, workers=WORKERS, keepalive=KEEP.get(host, 0)
    ) as under:
        under.settle_in()
        DONE[fault](under, faults.full)


# Not asgi: after `python -m gunicorn`, gunicorn's own USR2 puts the directory of its
# package before the standard library, whose `http` gasgi.py wants.
@pytest.mark.parametrize("host", full("sync", "threaded"))
def test_an_upgrade_of_the_binary_loses_nothing(
    servers: Servers, faults: Faults, host: str
) -> None:
    """USR2, and TERM to the old master when the new one's workers serve."""
    server = leaking(servers, host)
    with faults.under_load(
        "USR2 and TERM", server, host, workers=WORKERS, keepalive=KEEP.get(host, 0)
    ) as under:
        under.settle_in()
        server.signal(signal.SIGUSR2)
        heir = wait_until(
            lambda: [pid for pid in server.workers() if len(children(pid)) >= WORKERS],
            40,
            "a second master",
        )[0]
        server.adopt(heir)
        under.recycle(WORKERS)
        server.signal(signal.SIGTERM)
        server.process.wait(40)
        under.master, under.before = heir, None


def is_right(path: str, status: int, body: bytes) -> bool:
    if path.startswith("/begin"):
        return (status, body) == (200, b"ok")
    return is_sum(path, status, body)


# Half of the requests are for an answer that has begun: its loss is a `cut`, and shows
# that a worker had it.
BEGUN = [each for grows in GROWING for each in (grows, "/begin?s=0.3")]


@pytest.mark.parametrize("number", ["SIGTERM", "SIGQUIT", "SIGINT"])
@pytest.mark.parametrize("host", full("sync", "threaded", "asgi"))
def test_an_end_in_the_middle_of_everything_leaves_nothing(
    servers: Servers, faults: Faults, host: str, number: str
) -> None:
    """After a HUP, with workers that boot, leave and are killed."""
    chosen = random.Random(number)
    for _ in range(3):
        server = leaking(servers, host)
        with faults.under_load(
            f"{number} in a reload",
            server,
            host,
            workers=WORKERS,
            paths=BEGUN,
            check=is_right,
        ) as under:
            under.recycle(2)
            server.signal(signal.SIGHUP)
            time.sleep(chosen.random() / 2)
            under.kill(chosen.choice(server.workers()))
            since = time.monotonic()
            os.kill(server.pid, getattr(signal, number))
            assert server.wait_exit(40) == 0
            # What nobody had accepted, and what comes later.
            ways = ("refused", "reset")
            if number != "SIGTERM":  # quick by name: sync.py answers 500 to its own
                ways = (*ways, "cut", "wrong")  # SystemExit in a request
            under.stopped("the end of the server", since, ways)
