"""A log that takes nothing more must not end a start, a reload or a server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from conftest import QUICK, Servers, ready
from harness.processes import wait_until

HOSTS = ["sync", "uwsgi"]


@pytest.mark.parametrize("sink", ["disk", "pipe"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_server_whose_log_is_full_starts_recycles_reloads_and_stops(
    servers: Servers, host: str, sink: str, tmp_path: Path
) -> None:
    """uWSGI did not start, and a reload was an outage; nothing says so, of course."""
    options = {**QUICK, "cow-max-growth": "40M", "cow-warmup": "/"}
    environ = {"EXIT_LOG": str(tmp_path / "exit")}
    log, held = tmp_path / "server-0.log", -1
    if sink == "disk":
        log.symlink_to("/dev/full")
    else:
        os.mkfifo(log)
        held = os.open(log, os.O_RDWR)
        environ["BREAK"] = "full-pipe"  # full once it is loaded, and nobody waits
    try:
        server = servers.on(host, options, workers=1, environ=environ)
        server.log_path = tmp_path / "nothing"
        server.log_path.touch()
        worker = ready(server).workers()[0]
        assert server.get("/grow?mb=80")[0] == 200
        wait_until(lambda: server.workers() not in ([], [worker]), 20, "recycling")
        worker = ready(server).workers()[0]
        server.signal(signal.SIGHUP)
        wait_until(lambda: server.workers() not in ([], [worker]), 20, "the reload")
        ready(server).signal(signal.SIGTERM)
        assert server.wait_exit() == 0
    finally:
        if held >= 0:
            os.close(held)


def test_a_log_handler_that_raises_ends_nothing_of_ours(
    servers: Servers, tmp_path: Path
) -> None:
    """One that gunicorn's own lines pass: ours alone raise."""
    conf = tmp_path / "conf.py"
    conf.write_text(
        "import logging\n"
        "class Raises(logging.Handler):\n"
        "    def emit(self, record):\n"
        "        if record.getMessage().startswith('cow: '):\n"
        "            raise RuntimeError('no')\n"
        "logging.getLogger('gunicorn.error').addHandler(Raises())\n"
    )
    options = {**QUICK, "cow-max-growth": "40M", "config": str(conf)}
    server = servers.on("sync", options, workers=1)
    worker = ready(server).workers()[0]
    assert server.get("/grow?mb=80")[0] == 200
    wait_until(lambda: server.workers() not in ([], [worker]), 20, "recycling")
    ready(server).signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert "RuntimeError" not in server.log
