"""What an operator sees of a server that runs: status, its JSON, its exit status."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Servers, ready
from harness.processes import wait_until
from harness.server import Server
from unit.test_status import check

from cowpreload.cli import main
from cowpreload.report.timeline import timelines

# Over its limit a worker stays, as long as it is spared.
SPARED = {"cow-max-private": "60M", "cow-min-lifetime": "600", "cow-warmup": "/sum?n=9"}


@pytest.fixture(scope="module")
def server(shared: Servers) -> Server:
    return ready(shared.on("sync", SPARED, workers=2), workers=2)


def test_status_tells_a_monitor_that_a_limit_is_being_passed(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    who = str(server.pid)
    assert main(["status", who]) == 0
    shown = capsys.readouterr().out
    assert re.match(rf"master {who}: gunicorn [\d.]+ app, 2 workers, up ", shown)
    assert "\nfrozen " in shown
    assert server.get("/grow?mb=90")[0] == 200
    assert main(["status", who]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"^worker \d is over max-private: ", shown, re.MULTILINE)
    assert main(["status", "--json", who]) == 1
    text = capsys.readouterr().out
    assert "servers[].master.frozen.inherited" in check(text)
    (view,) = json.loads(text)["servers"]
    assert sorted(each["over"] for each in view["slots"]) == ["", "max-private"]


def test_a_recording_that_is_ended_has_whole_lines(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    command = [sys.executable, "-m", "cowpreload", "record", str(server.pid)]
    command += ["--output", str(file), "--interval", "0.1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as recording:
        wait_until(
            lambda: file.exists() and file.read_text().count("\n") > 2, 30, "lines"
        )
        recording.send_signal(signal.SIGTERM)
        _, said = recording.communicate(timeout=30)
    assert recording.returncode == 0
    lines = file.read_text().splitlines()
    assert f"{len(lines)} readings in {file}" in said
    assert "servers[].slots[].pss" in check(lines[-1])
    (line,), bad = timelines(lines)
    assert (len(line.times), bad, line.marks) == (len(lines), 0, [])
