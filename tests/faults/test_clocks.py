"""Clocks that jump while the server serves, or differ between its processes.

The machine's own are left alone: a library (programs/faulty.c) sets the wall clock, a
time namespace the others.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.faulty import Faulty
from harness.under_load import LEAKING

DAY = 86_400.0


@pytest.mark.parametrize("host", full("sync", "uwsgi", "threaded", "asgi"))
def test_a_wall_clock_that_is_set_forth_and_back_changes_nothing(
    servers: Servers, faults: Faults, tmp_path: Path, host: str
) -> None:
    faulty = Faulty(tmp_path)
    options = {**QUICK, **LEAKING, "cow-event-log": str(tmp_path / "events")}
    server = servers.on(host, options, workers=4, environ=faulty.environ)
    server.wait_serving(workers=4)
    with faults.under_load("the wall clock jumps", server, host, workers=4) as under:
        under.settle_in()
        for ahead in (DAY, -DAY, 0):
            faulty.set_clock(ahead)
            under.recycle(8)
    assert " killed " not in server.log


def can_have_time() -> bool:
    """Whether this user may make a time namespace."""
    return os.geteuid() == 0 and Path("/proc/self/timens_offsets").exists()


@pytest.mark.skipif(not can_have_time(), reason="needs root, and time namespaces")
@pytest.mark.parametrize("host", full("sync", "uwsgi", "threaded", "asgi"))
def test_workers_with_another_monotonic_clock_than_their_master_are_recycled(
    servers: Servers, faults: Faults, host: str
) -> None:
    """The application has made a time namespace, ten days ahead: children are in it."""
    server = servers.on(
        host, {**QUICK, **LEAKING}, workers=4, environ={"BREAK": "time"}
    )
    server.wait_serving(workers=4)
    with faults.under_load("workers ten days ahead", server, host, workers=4) as under:
        under.settle_in()
    assert " killed " not in server.log
