"""Executors that the master has used work in every worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from conftest import PYPY, Servers, deep, run
from harness.processes import alive, wait_until
from harness.server import Server

needs_freeze = pytest.mark.skipif(PYPY, reason="PyPy has no gc.freeze()")
KINDS = ["pool", "named", "busy", "processes", "loop", "asgiref"]
WARMUP = [f"/{kind}" for kind in KINDS]


def serving(servers: Servers, host: str, warm: bool, begin: str) -> Server:
    """One worker; its executors were used at import, by a warm up, or by both."""
    environ = {"BEGIN": begin, "PYTHONWARNINGS": "ignore"}
    paths = [path for path in WARMUP if begin != "import" or path != "/busy"]
    if host == "uwsgi":
        ini = {"processes": "1", "forkbomb-delay": "0", "worker-reload-mercy": "3"}
        warmup = {"cow-warmup": paths} if warm else {}
        return servers.uwsgi({**ini, **warmup}, app="executors", environ=environ)
    flags = ["--worker-class", "cow_asgi" if host == "asgi" else "cow"]
    flags += ["--threads", "2"] if host == "threaded" else []
    for path in paths if warm else []:
        flags += ["--cow-warmup", path]
    app = "executors:asgi" if host == "asgi" else "executors"
    return servers.gunicorn(*flags, app=app, environ=environ)


def answers(server: Server) -> dict[str, str]:
    return {kind: server.get(f"/{kind}")[1].decode() for kind in KINDS}


def forks(server: Server) -> list[int]:
    """The workers; multiprocessing's fork server is a child of the master, too."""
    of_master, *others = (
        (pid, Path(f"/proc/{pid}/cmdline").read_bytes())
        for pid in (server.pid, *server.workers())
    )
    return [pid for pid, command in others if command == of_master[1]]


@pytest.mark.parametrize(
    ("host", "begin"),
    [
        *(("sync", "import"), ("sync", ""), ("asgi", ""), ("uwsgi", "import")),
        *deep(("threaded", "import"), ("threaded", "")),
        *deep(("asgi", "import"), ("uwsgi", "")),
    ],
)
def test_executors_used_before_the_fork_do_not_hang_a_worker(
    servers: Servers, host: str, begin: str
) -> None:
    """Nor the next worker in its slot; and the worker ends without waiting for them."""
    server = serving(servers, host, True, begin).wait_serving()
    for _ in range(2):
        assert answers(server) == dict.fromkeys(KINDS, "ok")
        (worker,) = forks(server)
        os.kill(worker, signal.SIGTERM if host != "uwsgi" else signal.SIGHUP)
        wait_until(lambda worker=worker: not alive(worker), 20, "the worker to be gone")
        server.wait_serving()
    if begin:
        # What never ends is the master's, and named once.
        assert server.log.count("cow: fork-safety thread ") == 1
    else:
        assert "cow: fork-safety thread" not in server.log


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_an_executor_used_at_import_needs_no_warm_up_to_be_mended(
    servers: Servers, host: str
) -> None:
    server = serving(servers, host, False, "import").wait_serving()
    # uWSGI does not tell threading of the fork.
    assert len(server.get("/threads")[1].split()) == 1
    assert server.get("/busy") == (200, b"ok")
    assert server.get("/pool") == (200, b"ok")


@needs_freeze
@pytest.mark.parametrize(
    ("host", "freeze"),
    [("sync", "on"), ("uwsgi", "off"), *deep(("sync", "off"), ("uwsgi", "on"))],
)
def test_an_application_that_freezes_itself_does_not_hang_its_workers(
    servers: Servers, host: str, freeze: str
) -> None:
    """gc.freeze() at import hides executors from gc.get_objects(), and event loops."""
    environ = {"BEGIN": "import", "FREEZE": "1"}
    options = {"cow-freeze": freeze, "cow-warmup": "/pool"}
    server = servers.on(host, options, workers=1, app="executors", environ=environ)
    server.wait_serving()
    assert server.get("/pool") == (200, b"ok")
    assert server.get("/busy") == (200, b"ok")
    assert "cow: fork-safety event-loop" in server.log
    # What it asked for holds, whether we freeze or not.
    assert server.get("/frozen") == (200, b"True")


MOUNTED = """
from concurrent.futures import ThreadPoolExecutor
POOL = ThreadPoolExecutor(1)
def application(environ, start_response):
    start_response("200 OK", [])
    return [POOL.submit(lambda: b"ok").result(3)]
"""


def test_executors_of_further_interpreters_are_mended(
    servers: Servers, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(MOUNTED)
    ini = {
        "mount": ["/one=one:application", "/two=two:application"],
        "pythonpath": str(tmp_path),
        "processes": "1",
        "cow-warmup": ["/one", "/two"],
    }
    server = servers.uwsgi(ini, app=None)
    for name in ("one", "two"):
        assert server.wait_serving(f"/{name}").get(f"/{name}") == (200, b"ok")


def test_a_post_fork_hook_of_gunicorn_finds_executors_whole(
    servers: Servers, tmp_path: Path
) -> None:
    (tmp_path / "conf.py").write_text(
        "def post_fork(server, worker):\n"
        "    from executors import POOL, work\n"
        "    server.log.info('hook %s', POOL.submit(work).result(3))\n"
    )
    config = ["--config", str(tmp_path / "conf.py")]
    server = servers.gunicorn(
        "-k", "cow", *config, "--cow-warmup", "/pool", app="executors"
    )
    server.wait_serving().wait_log("hook ok")


FREEZE = """
import gc, os, threading
from concurrent.futures import ThreadPoolExecutor
import cowpreload
pool, stay = ThreadPoolExecutor(1), threading.Event()
pool.submit(stay.wait)
if {frozen}:
    gc.freeze()
cowpreload.freeze()
pid = os.fork()
if not pid:
    print(pool.submit(pow, 2, 10).result(5), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1], flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("frozen", [False, pytest.param(True, marks=needs_freeze)])
def test_children_of_a_frozen_process_find_executors_whole(frozen: bool) -> None:
    done = run("-W", "ignore", "-c", FREEZE.format(frozen=frozen))
    assert done.stdout == "1024\n0\n", done.stderr


ODD = """
import os, queue
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import cowpreload
from cowpreload.closing import close_all

class Inline(ThreadPoolExecutor):  # as some run their work at once
    def __init__(self): pass

class InlineProcesses(ProcessPoolExecutor):
    def __init__(self): pass

class Secret(ThreadPoolExecutor):
    @property
    def _threads(self): raise RuntimeError("not for you")
    @_threads.setter
    def _threads(self, value): pass

class Named(queue.SimpleQueue):
    def __new__(cls, name): return super().__new__(cls)

def used():
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()
    return pool

first = used()
odd = [Inline(), InlineProcesses(), Secret(1)]
named = ThreadPoolExecutor(1)
named._work_queue = Named("bounded")
named.submit(int).result()
last = used()
for fault in {close}():
    print(fault.splitlines()[0], flush=True)
cowpreload.freeze()
pid = os.fork()
if not pid:
    for pool in (first, named, last):
        print(pool.submit(pow, 2, 10).result(5), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1], flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("close", ["close_all", "list"])
def test_an_odd_executor_does_not_hang_the_others(close: str) -> None:
    """Neither where idle ones are ended nor in a worker; each fault is said."""
    done = run("-W", "ignore", "-c", ODD.format(close=close))
    *faults, first, second, third, status = done.stdout.splitlines()
    assert (first, second, third, status) == ("1024", "1024", "1024", "0"), done.stderr
    said = "raised RuntimeError: not for you"
    assert [said in each for each in faults] == [True] * (close == "close_all")
    (line,) = done.stderr.splitlines()
    assert line == f"cow: mending __main__.Secret: {said}; left as it is"


POSTFORK = """
import uwsgi
from executors import POOL, application, work
SAID = []
def hook():
    SAID.append(POOL.submit(work).result(3))
uwsgi.post_fork_hook = hook
"""


def test_a_postfork_hook_of_uwsgi_finds_executors_whole(
    servers: Servers, tmp_path: Path
) -> None:
    (tmp_path / "hooked.py").write_text(POSTFORK)
    ini = {"cow-warmup": "/pool", "processes": "1", "pythonpath": str(tmp_path)}
    server = servers.uwsgi(ini, app="hooked").wait_serving()
    assert server.get("/pool") == (200, b"ok")
    assert "Traceback" not in server.log


SEMAPHORES = """
import multiprocessing, os, re
from concurrent.futures import ProcessPoolExecutor
import cowpreload

def semaphores():
    maps = open("/proc/self/maps").read()
    return len(set(re.findall("/dev/shm/sem[.].*", maps)))

pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
cowpreload.freeze()
before = semaphores()
if not os.fork():
    print(before, semaphores(), flush=True)
    with pool:
        print(list(pool.map(abs, [-1, -2])), pool.submit(abs, -3).result(), flush=True)
    os._exit(0)
os.wait()
"""


def test_a_process_pool_that_no_worker_uses_costs_it_no_semaphores() -> None:
    """Those of spawn have names, which a worker that is killed leaves in /dev/shm."""
    counts, results = run("-c", SEMAPHORES, check=True).stdout.splitlines()
    before, after = map(int, counts.split())
    assert before
    assert after == before
    assert results == "[1, 2] 3"
