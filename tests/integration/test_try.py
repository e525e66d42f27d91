"""`cowpreload try` on a real application: the page, its own errors, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAMS, PYPY, needs_uwsgi
from harness.processes import alive, script, stat, wait_until

pytestmark = pytest.mark.skipif(PYPY, reason="the bench runs on CPython")
SMALL = ("--workers", "2", "--requests", "20")
MOMENTS = [
    "gunicorn, 2 workers: starting",
    pytest.param("loading tried", marks=pytest.mark.deep),
    pytest.param("gunicorn cow, 1 worker: starting", marks=pytest.mark.deep),
    pytest.param("all side by side, 2 workers", marks=pytest.mark.deep),
]


def command(app: str, *arguments: str) -> list[str]:
    return [script("cowpreload"), "try", app, *SMALL, *arguments]


def run(app: str, *arguments: str, cwd: Path = PROGRAMS) -> tuple[int, str, str]:
    """Exit code, page and progress."""
    done = subprocess.run(
        command(app, *arguments), cwd=cwd, capture_output=True, text=True, timeout=900
    )
    return done.returncode, done.stdout, done.stderr


def test_an_application_is_measured_in_each_mode_and_compared() -> None:
    paths = ("/", "/token", "/preloaded", "/broken")
    gets = [part for path in paths for part in ("--get", path)]
    code, out, said = run("tried", *gets, "--json")
    assert code == 0, said
    found = json.loads(out)
    assert "try: gunicorn cow, 2 workers: 20 requests" in said
    plain, preload, cow = found["modes"]
    for mode in found["modes"]:
        assert not mode["error"]
        assert [each["workers"] for each in mode["lives"]] == [1, 2]
        assert [each["wrong"] for each in mode["lives"]] == [0, 0]
        assert mode["cpu_ms"]["n"] == 3
    # The table is one worker's own without us, and nobody's where it is immortal.
    assert plain["one_more"] > 8 << 20
    if sys.version_info >= (3, 12):
        assert cow["one_more"] < plain["one_more"] / 2
        assert cow["immortal_objects"] > 0
    else:
        reasons = found["verdicts"][0]["reasons"]
        assert any("writes a reference count" in each for each in reasons)
    assert cow["warmup_requests"] > 0
    # What differs, differs by being preloaded; a token varies by itself.
    for mode in (preload, cow):
        assert [each["path"] for each in mode["differences"]] == ["/preloaded"]
    assert "/broken (500)" in found["notes"][0]
    assert "tried: no table named 'orders'" in found["notes"][1]
    (limited,) = found["limits"]
    assert limited["recycled"] == 0
    assert limited["highest"] < limited["limit"]
    assert 'worker_class = "cow"' in found["configuration"]["gunicorn.conf.py"]
    assert cow["why"]["advice"]


@pytest.mark.parametrize(
    ("app", "error", "own"),
    [
        ("tried:refused", "no page answers without an error: / (500)", "5432"),
        ("tried:create('x')", "cannot be loaded", "no configuration named 'x'"),
        pytest.param(
            *("nosuch", "cannot be loaded", "No module named 'nosuch'"),
            marks=pytest.mark.deep,
        ),
    ],
)
def test_what_does_not_run_shows_its_own_error(app: str, error: str, own: str) -> None:
    code, out, said = run(app)
    assert (code, out) == (1, "")
    assert error in said
    assert own in said
    assert said.count("could not connect") <= 1
    assert "cowpreload/" not in said  # no frame of ours


def marked(text: str) -> list[int]:
    """The living processes with `text` in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.deep)],
    ids=["SIGINT", "SIGTERM"],
)
def test_ctrl_c_leaves_no_process_and_no_file(
    tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    """The terminal sends SIGINT to all of them; a supervisor SIGTERM to the first."""
    log, files = tmp_path / "log", tmp_path / "tmp"
    files.mkdir()
    mark = f"TRIED_AT={tmp_path}"
    with log.open("wb") as out:
        running = subprocess.Popen(
            command("tried"),
            cwd=PROGRAMS,
            env={**os.environ, "TMPDIR": str(files), "TRIED_AT": str(tmp_path)},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        wait_until(lambda: moment in log.read_text(), 300, moment)
        if number == signal.SIGINT:
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        code = running.wait(120)
        left = [(pid, stat(pid)) for pid in marked(mark)]
    finally:
        running.kill()
        running.wait()
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
    said = log.read_text()
    assert code == 128 + number, said
    assert "Traceback" not in said
    assert "try: interrupted: every server has ended" in said
    assert left == []
    assert list(files.iterdir()) == []


@needs_uwsgi
@pytest.mark.deep
def test_both_hosts_are_tried_with_their_own_configurations(tmp_path: Path) -> None:
    (tmp_path / "uwsgi.ini").write_text(
        f"[uwsgi]\nhttp = :80\nchdir = {PROGRAMS}\nmodule = tried\nlazy-apps = true\n"
    )
    code, out, said = run("tried", "--uwsgi", str(tmp_path / "uwsgi.ini"), "--json")
    assert code == 0, said
    modes = {each["mode"]: each for each in json.loads(out)["modes"]}
    assert not [each["error"] for each in modes.values() if each["error"]]
    assert modes["uWSGI"]["one_more"] > 8 << 20  # lazy
    assert modes["uWSGI cow"]["one_more"] < modes["uWSGI"]["one_more"] / 2


@pytest.mark.deep
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="no wheels of uvicorn's there")
def test_an_asgi_application_is_served_as_its_users_do(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(
        "from fastapi import FastAPI\napp = FastAPI()\n"
        "@app.get('/')\nasync def index():\n    return {'a': 1}\n"
    )
    picture = tmp_path / "memory.png"
    code, out, said = run("served:app", "--png", str(picture), cwd=tmp_path)
    assert code == 0, said
    assert "served:app (ASGI)" in out
    assert 'worker_class = "cow_uvicorn"' in out
    assert picture.read_bytes().startswith(b"\x89PNG")
