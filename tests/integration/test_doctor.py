"""`cowpreload doctor` with an application: what it names, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness.processes import script, wait_until

from cowpreload.cli import main
from cowpreload.doctor import findings
from cowpreload.doctor.attend import Orders, Seen, attend
from cowpreload.units import MIB

PLANTED = """\
import threading, time
HEAP = [{"n": i, "name": f"name {i}"} for i in range(20000)]
def poll():
    while True: time.sleep(60)
threading.Thread(target=poll, name="poller", daemon=True).start()
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/cold/":
        import heavy
        return [heavy.NAME]
    return [b"warm"]
"""
HEAVY = """\
NAME = b"heavy"
TABLE = {i: f"row {i}" * 5 for i in range(30000)}
"""
HANGS = "import time\ndef stuck(): time.sleep(600)\nstuck()\n"
# Those of docs/doctor.md; $ and what follows is run here as it is there.
DOCS = Path(__file__).parents[2] / "docs" / "doctor.md"
MACHINE_COMMAND = "cowpreload doctor"
PLANTED_COMMAND = "cowpreload doctor planted --get /cold/ --json"
QUIET_COMMAND = "cowpreload doctor planted --no-pages"


@pytest.fixture(name="site")
def make_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of applications, in which the command runs."""
    files = {"planted": PLANTED, "heavy": HEAVY, "hangs": HANGS}
    files |= {"broken": "import nowhere_at_all\n"}
    files |= {"leaves": "import os\nprint('bye', flush=True)\nos._exit(7)\n"}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def see(app: str) -> Seen:
    """Attend to it; nothing that was started may be left."""
    before = children(os.getpid())  # services of other tests
    orders = Orders(app, seconds=30)
    found = attend(orders, debugging=False, progress=lambda text: None)
    assert children(os.getpid()) == before
    return found


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


@pytest.mark.each_python
def test_a_planted_thread_and_a_cold_path_are_named_with_their_figures(
    site: Path,
) -> None:
    before = sorted(site.rglob("*"))
    done = subprocess.run(
        [script("cowpreload"), *PLANTED_COMMAND.split()[1:]],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    facts = found["parts"][-1]["facts"]
    (thread,) = [each for each in facts if each["status"] == "bad"]
    assert thread["text"].startswith("thread name=poller ")
    assert f"started-by={site}/planted.py:5(<module>)" in thread["text"]
    assert "during=import" in thread["text"]
    (late,) = [each for each in found["advice"] if "import heavy" in each["text"]]
    assert f"/cold/ imports it at {site}/planted.py:9(application)" in late["text"]
    # 30,000 rows of 80 bytes and more, and the table of them.
    assert 3 * MIB < late["bytes"] < 10 * MIB
    (warm,) = [
        each for each in found["advice"] if "cow-warmup = /cold/" in each["text"]
    ]
    assert warm["bytes"] > 0.8 * late["bytes"]
    sizes = [each["bytes"] for each in found["advice"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sorted(site.rglob("*")) == before  # no compiled file either


def test_every_command_of_the_page_is_run_here() -> None:
    shown = re.findall(r"^    \$ (.*)", DOCS.read_text(), re.MULTILINE)
    assert set(shown) == {MACHINE_COMMAND, PLANTED_COMMAND, QUIET_COMMAND}


def test_without_an_application_the_machine_alone_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(MACHINE_COMMAND.split()[1:]) == 0
    text = capsys.readouterr().out
    assert re.findall(r"^\w.*", text, re.MULTILINE)[:3] == [
        "machine", "interpreter", "servers",
    ]  # fmt: skip
    assert re.search(r"^  ok    gunicorn      [\d.]+ is supported", text, re.MULTILINE)
    assert text.splitlines()[-1].endswith("0 bad")


@pytest.mark.parametrize(
    ("app", "text", "printed"),
    [
        ("broken", "No module named 'nowhere_at_all'", 'broken.py", line 1'),
        ("leaves", "the application ended the process with code 7", "bye"),
    ],
)
@pytest.mark.usefixtures("site")
def test_a_failure_of_the_application_is_shown_as_its_own(
    app: str, text: str, printed: str
) -> None:
    found = see(app)
    (fact,) = findings.application(found, app).facts
    assert (fact.status.value, fact.name) == ("bad", "loading")
    assert text in fact.text
    lines = "\n".join(findings.printed(found))
    assert printed in lines
    assert "subject.py" not in lines


@pytest.mark.usefixtures("site")
def test_one_that_hangs_is_ended_in_time_and_shows_where() -> None:
    before = children(os.getpid())
    orders = Orders("hangs", seconds=3)
    found = attend(orders, debugging=False, progress=lambda text: None)
    assert found.overdue
    assert "hangs.py" in found.printed
    assert "in stuck" in found.printed
    assert findings.application(found, "hangs").facts[-1].status.value == "bad"
    assert children(os.getpid()) == before


@pytest.mark.usefixtures("site")
def test_without_pages_a_thread_is_found_and_debug_hooks_have_their_price(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONMALLOC", "debug")
    assert main(QUIET_COMMAND.split()[1:]) == 1
    text = capsys.readouterr().out
    assert "  bad   fork safety   thread name=poller" in text
    assert "after 0 requests" in text
    found = re.search(r"([\d.]+) MiB  leave the debug hooks off", text)
    # 60,000 objects of the application, and those of the libraries.
    assert found is not None
    assert float(found[1]) * MIB > 60000 * 24


@pytest.mark.usefixtures("site")
def test_a_command_that_is_killed_leaves_nothing() -> None:
    look = "attend(Orders('hangs'), debugging=False, progress=print)"
    code = f"from cowpreload.doctor.attend import Orders, attend; {look}"
    quiet = subprocess.DEVNULL
    with subprocess.Popen([sys.executable, "-c", code], stdout=quiet) as process:
        try:
            (subject,) = wait_until(lambda: _in_session(process.pid), 60, "subject")
        finally:
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{subject}").exists(), 30, "its end")


def _in_session(pid: int) -> list[int]:
    """Children that lead a session of their own, and sleep: the application hangs."""
    found = []
    for each in children(pid):
        stat = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        command = Path(f"/proc/{each}/cmdline").read_bytes()
        if int(stat[3]) == each and b'"app"' in command:
            found.append(each)
    return found
