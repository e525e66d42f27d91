"""gunicorn's own signal handlers, while its master does what takes long."""

from __future__ import annotations

import os
from pathlib import Path

from conftest import run

BEGIN = """
import os, signal
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer
from cowpreload.candidates import Candidate
from cowpreload.hosts.gunicorn_serving import GunicornMaster
from cowpreload.settings import Settings
from cowpreload.warmup import warm_found
from cowpreload.warmup_visits import Manner
class Site(BaseApplication):
    def load_config(self): pass
    def load(self): return application
def lose_a_worker():
    "One that could not boot, as gunicorn knows it by its exit code."
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
def application(environ, start_response):
    lose_a_worker()
    start_response("200 OK", [])
    return []
def warm():
    settings, manner = Settings(), Manner.of(application, Settings())
    tried, _ = warm_found(application, [Candidate("/")], settings, manner, 5.0, print,
                          lambda: False, 5.0)
    print([each.dropped for each in tried], flush=True)
def handlers():
    return [signal.getsignal(each) for each in (*Arbiter.SIGNALS, signal.SIGCHLD)]
"""


def printed(code: str, gunicorn: Path | None = None) -> list[str]:
    environ = {**os.environ, "COW_WARMUP_REPEAT": "1"}
    if gunicorn is not None:
        environ["PYTHONPATH"] = str(gunicorn)
    done = run("-c", BEGIN + code, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_worker_that_cannot_boot_ends_gunicorn_23_after_the_pages(
    gunicorn23: Path,
) -> None:
    """Its handler of SIGCHLD raises what ends the server; in a page it was the
    page's, which was dropped for it."""
    lines = printed(
        """
arbiter = Arbiter(Site())
arbiter.init_signals()
before = handlers()
try:
    with GunicornMaster(arbiter).at_rest():
        warm()
except HaltServer as end:
    print(end.exit_status, handlers() == before)
""",
        gunicorn23,
    )
    assert lines == ["['']", "3 True"]


def test_a_worker_that_dies_in_the_last_writing_costs_gunicorn_23_no_file(
    gunicorn23: Path,
) -> None:
    lines = printed(
        """
from cowpreload.hosts.gunicorn_keeping import KEEPER
from cowpreload.hosts.gunicorn_master import MASTER
class Keeping:
    def end(self, board):
        lose_a_worker()
        print("written", flush=True)
arbiter = Arbiter(Site())
arbiter.init_signals()
before = handlers()
KEEPER._keeping = Keeping()
MASTER.board = object()
MASTER._end(arbiter)
print(handlers() == before)
""",
        gunicorn23,
    )
    assert lines == ["written", "True"]


def test_handlers_are_gunicorn_s_again_whatever_its_own_thread_does() -> None:
    """Wrapped for ever, each would be wrapped once more at each warm up."""
    lines = printed("""
class Failing(Arbiter):
    def _stop_control_server(self):
        if self.fails == "stop":
            raise OSError("stop")
    def _start_control_server(self):
        raise OSError("start")
arbiter = Failing(Site())
arbiter.init_signals()
before = handlers()
for arbiter.fails in ("stop", "start"):
    try:
        with GunicornMaster(arbiter).at_rest():
            pass
    except OSError as error:
        print(error, handlers() == before)
""")
    assert lines == ["stop True", "start True"]
