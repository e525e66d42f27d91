"""Workers that die under load: by somebody's SIGKILL, all the time."""

from __future__ import annotations

import random
import time

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.under_load import LEAKING

KEEP = {"threaded": 2, "asgi": 2}
HOSTS = ["sync", "uwsgi", *full("threaded", "asgi")]


@pytest.mark.parametrize("host", HOSTS)
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
