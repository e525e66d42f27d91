"""A client that keeps its connections, over many recyclings: none is closed unsaid."""

from __future__ import annotations

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.server import Server, free_port
from harness.under_load import LEAKING


def behind_a_router(servers: Servers) -> Server:
    """uWSGI's own HTTP router, which keeps the clients' connections."""
    port, inner = free_port(), f"127.0.0.1:{free_port()}"
    ini = {"http": f"127.0.0.1:{port}", "http-keepalive": "60", "http-to": inner}
    ini |= {"socket": inner, "processes": "4", "forkbomb-delay": "0"}
    server = servers.uwsgi({**QUICK, **LEAKING, **ini})
    server.port = port
    return server


@pytest.mark.parametrize("host", full("threaded", "asgi", "uwsgi-router"))
def test_kept_connections_are_told_before_they_are_closed(
    servers: Servers, faults: Faults, host: str
) -> None:
    if host == "uwsgi-router":
        server = behind_a_router(servers)
    else:
        server = servers.on(host, {**QUICK, **LEAKING}, workers=4)
    server.wait_serving(workers=4)
    with faults.under_load(
        "kept connections", server, host, workers=4, keepalive=4
    ) as under:
        under.settle_in()
        under.recycle(faults.pick(10, 60), seconds=200)
    report = under.load.report
    assert report.on_kept > report.requests / 4
    assert report.kept_closed == 0
