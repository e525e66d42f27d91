"""The trial by itself: what it costs at most, and what must not come out of a child."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from ast import literal_eval
from typing import Any

import pytest
from conftest import run
from harness.processes import alive, wait_until

from cowpreload import callbacks
from cowpreload.candidates import NO_TIME
from cowpreload.warmup_lines import compose

BEGIN = """
import os, signal, sys, threading, time
from cowpreload.hosts.forks import FORKS
from cowpreload.candidates import Candidate
from cowpreload.trial import Limits, Trial
from cowpreload.trial_child import Work
MASTER = os.getpid()
def visit(candidates, answered):
    for each in candidates:
        status = page(each.path)
        if not answered(each, status, None):
            return
def begin(): pass
def left(): return []
def again(): pass
def stopped(): return False
def trial(paths, candidate=0.3, total=30.0):
    work = Work(lambda: begin(), visit, lambda status, error: "" if status == 200 else
                f"answered {status}", lambda: None, lambda: left(), total,
                lambda: again())
    made = Trial(work, Limits(candidate, total), stopped, FORKS)
    began = time.monotonic()
    made.over([Candidate(each) for each in paths])
    print(made.faults)
    print([(each.candidate.path, each.dropped) for each in made.tried])
    print([made.note, round(time.monotonic() - began, 1)])
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        assert children.read() == ""
"""


def trial(code: str) -> tuple[list[tuple[str, str]], str, float, str]:
    """What was tried, the note, the seconds, and stderr."""
    done = run("-c", BEGIN + code)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[-2:]
    note, seconds = literal_eval(second)
    return literal_eval(first), note, seconds, done.stdout + done.stderr


def test_pages_that_hang_do_not_take_more_than_the_time_for_all() -> None:
    tried, note, seconds, _ = trial("""
def page(path):
    time.sleep(600)
trial([f"/{n}" for n in range(50)], candidate=0.2, total=1.0)
""")
    assert note == NO_TIME
    assert seconds < 20
    assert tried[0] == ("/0", "no answer within 0.2 s")
    assert tried[-1] == ("/49", f"not tried: {NO_TIME}")
    assert len(tried) == 50


def test_a_child_that_ends_at_each_page_ends_the_trial_at_the_last() -> None:
    tried, note, _, _ = trial("""
def page(path):
    os._exit(0)
trial(["/a", "/b"])
""")
    reason = "ended the process with code 0"
    assert (tried, note) == ([("/a", reason), ("/b", reason)], "")


def test_a_child_that_does_not_even_begin_is_tried_once() -> None:
    """An after_fork callback that raises: no page would be reached by another child."""
    tried, note, _, _ = trial("""
def begin():
    print("begun", file=sys.stderr, flush=True)
    raise OSError("no broker")
trial(["/a", "/b"])
""")
    assert note == "its child: raised OSError: no broker"
    assert tried == [("/a", f"not tried: {note}"), ("/b", f"not tried: {note}")]


def test_a_child_that_does_not_come_to_its_end_spoils_what_it_tried() -> None:
    """The end of an event loop waits for what some page has left, and for no other."""
    tried, note, _, _ = trial("""
def page(path):
    return 200
visit_all = visit
def visit(candidates, answered):
    visit_all(candidates, answered)
    time.sleep(600)
trial(["/a", "/b"])
""")
    assert note == ""
    assert tried[0][1] == "the child that tried it: no end within 0.3 s"


def test_a_callback_that_waits_for_ever_after_the_pages_spoils_them() -> None:
    """It is called unasked in a master that serves: a queue that is flushed, whose
    thread is gone."""
    tried, note, _, printed = trial("""
def page(path):
    return 200
def again():
    time.sleep(600)
trial(["/a", "/b"])
""")
    why = "before_fork callbacks do not come back within 0.3 s"
    spoiled = f"the child that tried it: {why}"
    assert (tried, note) == ([("/a", spoiled), ("/b", spoiled)], "")
    assert f"['2 tried in one child stay cold: {why}']" in printed


def test_a_page_that_keeps_memory_at_each_request_does_not_make_the_master_large() -> (
    None
):
    tried, _, _, _ = trial("""
kept = []
def page(path):
    if path == "/keeps":
        kept.append(bytearray(10 << 20))
    elif path == "/imports" and not hasattr(sys, "imported"):
        sys.imported = [bytearray(20 << 20)]
    elif path == "/cycles":
        cycle = [bytearray(10000) for _ in range(2000)]
        cycle.append(cycle)
    return 200
trial(["/keeps", "/imports", "/cycles", "/plain"], candidate=30)
""")
    assert tried == [
        ("/keeps", "keeps 10MiB at each request"),
        ("/imports", ""),
        ("/cycles", ""),
        ("/plain", ""),
    ]


def test_what_is_buffered_is_written_once_and_no_exit_handler_runs() -> None:
    _, _, _, text = trial("""
import atexit
atexit.register(lambda: os.write(2, b"handler\\n"))
log = open(os.dup(2), "w")
log.write("buffered\\n")
def page(path):
    log.write("of the child\\n")
    return 200
trial(["/a"])
""")
    assert text.count("buffered") == 1
    assert "of the child" not in text
    assert text.count("handler") == 1


def test_a_process_that_a_page_leaves_does_not_keep_the_trial_waiting() -> None:
    """It holds the pipe to the master open."""
    tried, _, _, _ = trial("""
reading, writing = os.pipe()
def page(path):
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    os.write(writing, b"%d" % pid)
    os._exit(4)
trial(["/a"], candidate=100.0, total=1000.0)
os.kill(int(os.read(reading, 20)), signal.SIGKILL)
""")
    assert tried == [("/a", "ended the process with code 4")]


def test_a_process_that_a_hanging_page_waits_for_ends_with_it() -> None:
    tried, _, _, text = trial("""
import subprocess
from cowpreload.ending import lives
reading, writing = os.pipe()
def page(path):
    started = subprocess.Popen(["sleep", "600"])
    os.write(writing, b"%d" % started.pid)
    started.wait()
trial(["/a"], candidate=2.0)
pid = os.read(reading, 20).decode()
until = time.monotonic() + 20
while lives(pid) and time.monotonic() < until:
    time.sleep(0.05)
print(f"lives: {lives(pid)}", file=sys.stderr)
""")
    assert tried == [("/a", "no answer within 2 s")]
    assert "lives: False" in text


def test_a_page_that_returns_in_two_processes_is_asked_once() -> None:
    tried, _, _, _ = trial("""
def page(path):
    if path == "/fork":
        os.fork()
    return 200
trial(["/fork", "/b"])
""")
    assert [path for path, _ in tried] == ["/fork", "/b"]


def test_a_page_that_writes_into_the_pipe_breaks_nothing() -> None:
    tried, _, _, _ = trial("""
def page(path):
    for fd in range(3, 20):
        try:
            os.write(fd, b"[1]\\nrubbish\\n")
        except OSError:
            pass
    return 200
trial(["/a", "/b"])
""")
    assert [path for path, _ in tried] == ["/a", "/b"]


def test_a_host_that_ignores_or_reaps_its_children_loses_none() -> None:
    """A parent such as nohup's may leave SIGCHLD ignored: the kernel reaps then."""
    tried, _, _, _ = trial("""
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def page(path):
    if path == "/a":
        os._exit(5)
    return 200
trial(["/a", "/b"])
assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
""")
    assert tried == [("/a", "ended the process with code 5"), ("/b", "")]


def test_a_lock_that_a_thread_of_the_master_holds_costs_a_time_limit() -> None:
    tried, _, _, _ = trial("""
lock = threading.Lock()
held = threading.Event()
def hold():
    with lock:
        held.set()
        time.sleep(600)
threading.Thread(target=hold, daemon=True).start()
held.wait()
def page(path):
    if path == "/locked":
        with lock:
            pass
    return 200
trial(["/locked", "/b"])
""")
    assert tried == [("/locked", "no answer within 0.3 s"), ("/b", "")]


def test_a_signal_that_waits_ends_the_trial() -> None:
    tried, note, seconds, _ = trial("""
begun = time.monotonic()
def stopped(): return time.monotonic() > begun + 0.3
def page(path):
    time.sleep(600)
trial(["/a", "/b"], candidate=100.0, total=1000.0)
""")
    assert note == "a signal waits"
    assert seconds < 10
    assert tried[0] == ("/a", "not tried: a signal waits")


def test_callbacks_before_the_fork_are_called_again_only_where_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ordinarily once; what a second call raises ends no start."""
    called: list[str] = []

    def second() -> None:
        called.append("second")
        if called.count("second") == 2:
            raise ValueError("closed already")

    monkeypatch.setattr(callbacks, "_before", [lambda: called.append("first"), second])
    monkeypatch.setattr(callbacks, "_called", [])
    callbacks.run_before()
    callbacks.run_before()
    assert called == ["first", "second"]
    (fault,) = callbacks.run_before_again()
    assert "raised ValueError: closed already" in fault
    assert called.count("first") == 2


def test_a_fork_that_fails_leaves_no_descriptor_open() -> None:
    """A master tries again, after minutes; for years."""
    done = run(
        "-c",
        BEGIN
        + """
def fork():
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = fork
before = os.listdir("/proc/self/fd")
for _ in range(2):
    try:
        trial(["/"])
    except BlockingIOError:
        print("failed")
assert os.listdir("/proc/self/fd") == before
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "failed\nfailed\n"


def test_a_child_that_cannot_even_close_a_pipe_is_no_second_master() -> None:
    """It would have gone on with the master's own work, to its end."""
    done = run(
        "-c",
        BEGIN
        + """
real = os.close
def close(descriptor):
    if os.getpid() != MASTER:
        raise OSError("no close")
    real(descriptor)
os.close = close
trial(["/"])
os.write(1, b"of a master\\n")
""",
    )
    assert done.returncode == 0, done.stderr
    assert "raised OSError: no close" in done.stdout
    assert done.stdout.count("of a master") == 1


def test_a_child_ends_with_a_master_that_is_killed() -> None:
    """It holds the listening socket, and no new server could bind the port."""
    code = """
def page(path):
    print(os.getpid(), flush=True)
    time.sleep(600)
trial(["/"], candidate=600.0, total=600.0 * 4)
"""
    command = [sys.executable, "-c", BEGIN + code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as master:
        assert master.stdout is not None
        try:
            child = int(master.stdout.readline())
        finally:
            master.kill()
    try:
        wait_until(lambda: not alive(child), 20, "its end")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def test_the_command_tries_the_routes_of_an_application(tmp_path: Any) -> None:
    """Without a server; for programs too."""
    pytest.importorskip("flask")
    (tmp_path / "site_app.py").write_text(
        "import flask\n"
        "app = flask.Flask('site', static_folder=None)\n"
        "app.add_url_rule('/', 'index', lambda: 'ok')\n"
        "app.add_url_rule('/gone', 'gone', lambda: ('', 404))\n"
        "app.add_url_rule('/logout', 'logout', lambda: 'bye')\n"
        "def factory(): return app\n"
    )
    main = ("-m", "cowpreload", "warmup")
    done = run(*main, "site_app", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    about = [
        (each["path"], each["status"], each["dropped"]) for each in shown["routes"]
    ]
    assert about == [("/", 200, ""), ("/gone", 404, "answered 404")]
    assert shown["left_out"] == [
        {"path": "/logout", "reason": "`logout` ends a session"}
    ]
    assert shown["routes"][0]["private"] > 0
    (tmp_path / "warm").write_bytes(compose("site_app:factory()", [b"/?x=1"], []))
    done = run(*main, "site_app:factory()", "--file", "warm", cwd=tmp_path)
    assert "  /?x=1\n" in done.stdout
    assert "2 of 3 would be warmed, 1 were left out" in done.stdout
    done = run(*main, "site_app:nothing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "app=site_app:nothing: names nothing that can be called" in done.stderr
    done = run(*main, "nowhere.wsgi", cwd=tmp_path)
    assert "app=nowhere.wsgi: No module named 'nowhere'" in done.stderr
