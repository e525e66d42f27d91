"""The sealed heap on real servers: what workers allocate lands on pages of its own."""

from __future__ import annotations

import importlib.util
import os
import signal

import pytest
from conftest import PYPY, Servers, deep
from harness.processes import alive, wait_until
from harness.server import Server

pytestmark = [
    pytest.mark.skipif(PYPY, reason="PyPy's objects move; it has no holes"),
    pytest.mark.each_python,
]


def grown(server: Server) -> int:
    """Bytes that a fresh worker's private memory grows by 4 MB of new objects."""
    before = int(server.get("/")[1])
    return int(server.get("/grow")[1]) - before


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
def test_new_objects_fill_holes_and_copy_what_is_around_them(
    servers: Servers, host: str
) -> None:
    """A respawned worker's, too: the holes are the master's."""
    options = {"cow-seal": "off"}
    off = servers.on(host, options, workers=1, app="holed").wait_serving()
    assert grown(off) > 15_000_000
    assert " sealed=0KiB " in off.log
    on = servers.on(host, workers=1, app="holed").wait_serving()
    first = on.workers()[0]
    assert grown(on) < 8_000_000
    assert " sealed=0KiB " not in on.log
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not alive(first), 10, "the worker to be gone")
    assert grown(on.wait_serving()) < 8_000_000


def test_another_allocator_is_left_as_it_is_and_named(servers: Servers) -> None:
    environ = {"PYTHONMALLOC": "debug"}
    server = servers.on("sync", workers=1, app="holed", environ=environ).wait_serving()
    server.wait_log("cow: seal: left as it is: Python's objects: kept by another")


@pytest.mark.skipif(
    importlib.util.find_spec("gunicorn.ctl") is None, reason="gunicorn has none"
)
def test_the_first_workers_share_what_the_masters_control_server_needs(
    servers: Servers,
) -> None:
    """gunicorn loads it right after it has forked them."""
    server = servers.on("sync", workers=1, app="holed").wait_serving()
    assert b"\ngunicorn.ctl.server\n" in server.get("/loaded")[1]
