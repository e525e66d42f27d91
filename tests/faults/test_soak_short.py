"""`make soak` in short: it finds nothing, and ends cleanly when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from fault_table import Faults
from harness.processes import wait_until

pytestmark = pytest.mark.faults
CODE = (
    f"import runpy, sys; sys.path[:0] = {[str(ROOT / 'tools'), str(ROOT / 'tests')]};"
    "runpy.run_module('soak', run_name='__main__', alter_sys=True)"
)


def start(output: Path, *arguments: str) -> subprocess.Popen[str]:
    """A soak of one host, with faults as often as a short one needs."""
    command = [sys.executable, "-c", CODE, "--output", str(output), "--pace", "4"]
    return subprocess.Popen(
        [*command, *arguments],
        env={**os.environ, "TMPDIR": str(output.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def marked(output: Path) -> list[str]:
    """Processes that a soak has left: its directory is in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"SOAK_BEGUN={output.parent}".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("host", ["threads", "uwsgi-threads"])
def test_a_soak_in_short_finds_nothing(
    faults: Faults, tmp_path: Path, host: str
) -> None:
    output = tmp_path / "soak.json"
    with start(output, "--minutes", "0.4", "--seed", "1", "--hosts", host) as soak:
        table, said = soak.communicate(timeout=400)
    assert soak.returncode == 0, f"{table}\n{said}"
    (found,) = json.loads(output.read_text())["hosts"]
    assert re.search(r"^\| lost, unexplained \| 0 \|$", table, re.M)
    lost = sum(found["explained"].values())
    faults.add(
        fault="soak in short", host=host, requests=found["right"] + lost,
        on_kept=found["kept"], lost=lost, unexplained=0, kept_closed=0,
        recyclings=sum(found["recycled"].values()), explained=found["explained"],
        pace=(0.0, 0.0),
    )  # fmt: skip
    assert found["deaths"]["our SIGKILL"] > 0
    assert found["killed"]["max-private-hard"] > 0
    assert marked(output) == []


def test_a_soak_that_is_interrupted_ends_its_servers_and_shows_its_table(
    tmp_path: Path,
) -> None:
    output = tmp_path / "soak.json"
    with start(output, "--seed", "1", "--hosts", "sync") as soak:
        served = "cow-soak-*/sync/begun"
        wait_until(lambda: any(tmp_path.glob(served)), 60, "a request")
        soak.send_signal(signal.SIGINT)
        table, said = soak.communicate(timeout=200)
    assert soak.returncode == 0, f"{table}\n{said}"
    assert "| lost, unexplained | 0 |" in table
    assert json.loads(output.read_text())["seed"] == 1
    assert marked(output) == []
    assert not list(tmp_path.glob("cow-soak-*"))
