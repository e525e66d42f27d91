"""`make demo` stopped by Ctrl-C: nothing is left of it, at whatever moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PYPY, ROOT
from harness.processes import alive, wait_until

pytestmark = pytest.mark.skipif(PYPY, reason="the demo runs on CPython")

# As tools/envs.py starts it, once the environment is there.
START = (
    "import sys; sys.path.insert(0, 'tools'); import envs;"
    "print('started', file=sys.stderr, flush=True);"
    "envs.become(sys.executable, '-m', 'cowpreload.bench.demo')"
)
MOMENTS = [
    "started",
    "filling the database",
    "gunicorn: starting",  # its first mode
]
LATE = [
    "gunicorn --preload: 500 requests",
    "gunicorn --preload: with 1 of 4 workers",
    "gunicorn cow: one worker grows",
    "building the uWSGI plugin",
    "uWSGI cow against uWSGI",
    "Ctrl-C here",
]


def session(leader: int) -> list[int]:
    """The living processes of a session, orphans too."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                found.append(int(entry.name))
    return list(filter(alive, found))


@pytest.mark.parametrize(
    "moment", [*MOMENTS, *(pytest.param(each, marks=pytest.mark.deep) for each in LATE)]
)
def test_ctrl_c_leaves_no_traceback_no_file_and_no_process(
    tmp_path: Path, moment: str
) -> None:
    """The terminal sends it to all of them at once."""
    log = tmp_path / "log"
    files = tmp_path / "tmp"
    files.mkdir()
    small = {"SHOP_CATALOGUE_MB": "5", "SHOP_NELSON": "0", "TMPDIR": str(files)}
    with log.open("wb") as out:
        running = subprocess.Popen(
            [sys.executable, "-c", START],
            cwd=ROOT,
            env={**os.environ, **small},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        wait_until(lambda: moment in log.read_text(), 300, moment)
        os.killpg(running.pid, signal.SIGINT)
        code = running.wait(60)
        left = session(running.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    said = log.read_text()
    assert code == 128 + signal.SIGINT, said
    assert "Traceback" not in said
    assert "stopped: every server has ended" in said
    assert left == []
    assert list(files.iterdir()) == []
