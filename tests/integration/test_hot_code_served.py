"""Hot code on real servers: a worker copies few pages by running it."""

from __future__ import annotations

import re
import sys

import pytest
from conftest import PYPY, Servers
from harness.server import Server

pytestmark = [
    pytest.mark.each_python,
    pytest.mark.skipif(
        PYPY or sys.version_info < (3, 12), reason="its code is not known"
    ),
]


def laid(server: Server) -> int:
    found = re.search(r"cow: preload .* hot-code=(\d+) ", server.log)
    assert found, server.log
    return int(found[1])


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_worker_copies_a_page_for_each_function_that_it_runs(
    servers: Servers, host: str
) -> None:
    options = {"cow-warmup": "/hot"}
    on = servers.on(host, options, workers=1, app="hot_app").wait_serving()
    assert 400 <= laid(on) < 800
    off = servers.on(
        host, {**options, "cow-hot-code": "off"}, workers=1, app="hot_app"
    ).wait_serving()
    assert laid(off) == 0
    assert int(off.get("/hot")[1]) > 400 * 4096
    assert int(on.get("/hot")[1]) < 200 * 4096


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_profiler_that_was_started_before_the_fork_is_left_alone(
    servers: Servers, host: str
) -> None:
    environ = {"HOT_APP_PROFILED": "1"}
    server = servers.on(
        host, {"cow-warmup": "/hot"}, workers=1, app="hot_app", environ=environ
    ).wait_serving()
    server.wait_log("cow: hot-code=off: the process is being traced or profiled")
    assert laid(server) == 0
