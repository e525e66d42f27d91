"""Hot code on real servers: a worker copies few pages by running it."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from conftest import PYPY, Servers, deep
from harness.server import Server

pytestmark = [
    pytest.mark.each_python,
    pytest.mark.skipif(
        PYPY or sys.version_info < (3, 12), reason="its code is not known"
    ),
]


KINDS = {"cow-warmup": "/"}  # of hot_tools: what it answers is in there
TOOLS = ["traced", "traced-thread", "profiled", "monitored", "monitored-function"]
TOOLS += ["pdb", *(["pdb-monitoring"] if sys.version_info >= (3, 14) else [])]
if find_spec("coverage"):
    TOOLS += ["coverage-ctrace", "coverage-sysmon"]


def asked(server: Server, path: str) -> Any:
    status, body = server.get(f"/{path}")
    assert status == 200, server.log
    return json.loads(body)


def laid(server: Server) -> int:
    found = re.search(r"cow: preload .* hot-code=(\d+) ", server.log)
    assert found, server.log
    return int(found[1])


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
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


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
def test_a_profiler_that_was_started_before_the_fork_is_left_alone(
    servers: Servers, host: str
) -> None:
    environ = {"HOT_APP_PROFILED": "1"}
    server = servers.on(
        host, {"cow-warmup": "/hot"}, workers=1, app="hot_app", environ=environ
    ).wait_serving()
    server.wait_log("cow: hot-code=off: the process is being traced or profiled")
    assert laid(server) == 0


def test_a_tool_that_starts_in_a_worker_sees_nothing_else_than_without(
    servers: Servers,
) -> None:
    """Tracers, profilers, monitors, coverage.py and pdb, over code that was laid."""
    options = {**KINDS, "cow-hot-code": "off"}
    off = servers.on("sync", options, workers=1, app="hot_tools").wait_serving()
    on = [
        servers.on(host, KINDS, workers=1, app="hot_tools").wait_serving()
        for host in ("sync", "uwsgi")
    ]
    assert [asked(each, "moved") > 8 for each in (off, *on)] == [False, True, True]
    for tool in TOOLS:
        before = asked(off, tool)
        assert len(before) > 1, tool
        for server in on:
            assert asked(server, tool) == before, tool
    if "coverage-sysmon" in TOOLS:
        assert asked(on[0], "coverage-ctrace")[0] == "CTracer"
        assert asked(on[0], "coverage-sysmon")[0] == "SysMonitor"
        assert len(asked(on[0], "coverage-sysmon")[1]) > 50
    assert "('a is', 4)" in asked(on[0], "pdb")
    assert "('b is', 5)" in asked(on[0], "pdb")


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_no_line_tells_which_other_setting_leaves_hot_code_where_it_is(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, {"cow-seal": "off"}, workers=1).wait_serving()
    server.wait_log("cow: hot-code=off: seal=off: hot code is laid behind the holes")
