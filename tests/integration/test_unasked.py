"""What runs unasked right before the fork, and at a reload, may fail."""

from __future__ import annotations

import signal

import pytest
from conftest import QUICK, Servers, ready
from harness.processes import wait_until


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_what_fails_unasked_is_said_and_ends_neither_a_start_nor_a_reload(
    servers: Servers, host: str
) -> None:
    """On uWSGI, each such failure ended the start, on gunicorn both."""
    options = {**QUICK, "cow-warmup": "/"}
    server = servers.on(host, options, workers=1, app="unasked")
    worker = ready(server).workers()[0]
    for what in ("record of the warm up", "what the command line is told", "warm up"):
        assert f"cow: {what}" in server.log
    assert server.log.count(": RuntimeError: unasked: serving on without") == 3
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.workers() not in ([], [worker]), 30, "the reload")
    assert ready(server).get("/")[0] == 200
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
