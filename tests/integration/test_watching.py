"""What an operator sees of a server that runs: status, its JSON, its exit status."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Servers, ready
from harness.processes import wait_until
from harness.server import Server
from unit.test_status import check

from cowpreload.board import open_board
from cowpreload.cli import main
from cowpreload.cli.renewing import renew
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


def test_a_worker_is_recycled_by_the_hosts_own_means(server: Server) -> None:
    """As `top` asks for it, on the board; another generation is left alone."""
    board = open_board(server.pid)
    before = board.view(2)
    assert renew(server.pid, 2, before.generation + 1).endswith("replaced already")
    asked = renew(server.pid, 2, before.generation)
    assert asked == "worker 2 is asked to leave after its requests"
    wait_until(
        lambda: (
            board.view(2).generation > before.generation
            and board.view(2).state == "ready"
        ),
        30,
        "the next generation",
    )
    last = board.view(2).last
    assert last is not None
    assert (last.reason, last.generation) == ("renewed", before.generation)
    assert "cannot be asked" in renew(1 << 22, 2, 1)


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("tmux") is None, reason="apt-get install tmux")
def test_top_in_a_real_terminal(server: Server, tmp_path: Path) -> None:
    """80 columns and 24 lines: bars, the question, the report, and nothing left."""
    pytest.importorskip("textual")
    socket = ["tmux", "-S", str(tmp_path / "tmux")]
    command = f"{sys.executable} -m cowpreload top {server.pid} --interval 0.5"

    def screen() -> str:
        done = subprocess.run(
            [*socket, "capture-pane", "-p"], capture_output=True, text=True, check=True
        )
        return done.stdout

    def press(*keys: str) -> None:
        subprocess.run([*socket, "send-keys", *keys], check=True)

    size = ["-x", "80", "-y", "24"]
    ended = f"{command}; echo left=$?; sleep 600"
    subprocess.run([*socket, "new-session", "-d", *size, ended], check=True)
    try:
        wait_until(lambda: "█░" in screen(), 60, "bars")
        assert f"master {server.pid}" in screen()
        press("w")
        wait_until(lambda: "MiB private. Read" in screen(), 60, "the report")
        press("Escape")
        wait_until(lambda: "█░" in screen(), 30, "bars again")
        generation = open_board(server.pid).view(1).generation
        press("r")
        wait_until(lambda: "Recycle worker 1 " in screen(), 30, "the question")
        press("y")
        wait_until(
            lambda: f"worker 1, now generation {generation + 1}" in screen(),
            60,
            "the event",
        )
        press("q")
        wait_until(lambda: "left=0" in screen(), 30, "the end")
        assert "█" not in screen()
    finally:
        subprocess.run([*socket, "kill-server"], check=False)
