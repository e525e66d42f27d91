"""Workers that end under load all the time: by a SIGKILL, or by a limit."""

from __future__ import annotations

import random
import time

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.under_load import LEAKING

KEEP = {"threaded": 2, "asgi": 2}


@pytest.mark.parametrize("host", ["sync", *full("uwsgi", "threaded", "asgi")])
def test_a_worker_killed_each_second_costs_what_it_had_and_no_more(
    servers: Servers, faults: Faults, host: str
) -> None:
    server = servers.on(host, {**QUICK, **LEAKING}, workers=4)
    server.wait_serving(workers=4)
    chosen = random.Random(4)
    with faults.under_load(
        "SIGKILL once a second", server, host, workers=4, keepalive=KEEP.get(host, 0)
    ) as under:
        under.settle_in()
        end = time.monotonic() + faults.pick(2, 60)
        while time.monotonic() < end:
            if workers := server.workers():
                under.kill(chosen.choice(workers))
            time.sleep(1)


# The short form is test_many_recyclings_under_load_lose_no_request.
@pytest.mark.parametrize("host", full("sync", "threaded", "asgi", "uwsgi"))
def test_recycling_without_pause_loses_nothing_and_leaves_nothing(
    servers: Servers, faults: Faults, host: str
) -> None:
    """Each request passes the limit; each worker is recycled when it is ready."""
    options = {**QUICK, "cow-max-growth": "5M", "cow-max-recycling": "3"}
    server = servers.on(host, options, workers=4).wait_serving(workers=4)
    with faults.under_load(
        "recycling without pause", server, host, workers=4, keepalive=KEEP.get(host, 0)
    ) as under:
        under.settle_in()
        under.recycle(100, seconds=200)
