"""The recipes of docs/fork-safety.md, with the real libraries.

Each is a program that does what a master does: load, warm up, `before_fork`, fork; in
the children `after_fork`, then requests, and again for the next generation.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import deep, run
from harness.processes import wait_until
from harness.server import free_port
from harness.services import Postgres

DOCS = Path(__file__).parent.parent.parent / "docs" / "fork-safety.md"

AROUND = """
import os, sys, traceback
import cowpreload
from cowpreload import callbacks, mending
from cowpreload.audit import audit, descriptors
from cowpreload.closing import close_all
URL, PORT = {url!r}, {port}
before = descriptors()
{made}
{recipe}
def request():
{used}
first = request()
callbacks.run_before()
assert close_all() == []
found = [each.line() for each in audit(before)]
assert not found, found
mending.prepare()
sys.stdout.flush()
def worker():
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        callbacks.run_after()
        for _ in range(5):
            assert request() == first
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
for _ in range(2):  # two at once, and their successors
    pids = [worker(), worker()]
    print([os.waitpid(pid, 0)[1] for pid in pids], flush=True)
os._exit(0)
"""


def recipe(library: str) -> str:
    """The lines of the page below the comment that names the library."""
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    for block in blocks:
        if f"# {library}" in block:
            text = block.split(f"# {library}", 1)[1].split("\n", 1)[1]
            return str(re.split(r"\n# ", text)[0])
    raise LookupError(f"{DOCS.name} has no recipe for {library}")


def works(library: str, made: str, used: str, url: str = "", port: int = 0) -> None:
    """Run the recipe, if any; every worker must get what the warm up got."""
    program = AROUND
    indented = "\n".join(f"    {line}" for line in used.strip().splitlines())
    for name, text in {
        "{made}": made,
        "{recipe}": recipe(library) if library else "",
        "{used}": indented,
        "{url!r}": repr(url),
        "{port}": str(port),
    }.items():
        program = program.replace(name, text)
    done = run("-W", "ignore::DeprecationWarning", "-c", program)
    assert done.stdout == "[0, 0]\n[0, 0]\n", done.stderr


@contextlib.contextmanager
def _listening(command: list[str], port: int) -> Iterator[None]:
    """A process that listens there, ended afterwards."""

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    process = subprocess.Popen(command)
    try:
        wait_until(answers, 20, "a server")
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """A web server that keeps connections open; its URL."""
    port = free_port()
    code = (
        "import http.server as h\n"
        "class H(h.BaseHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def do_GET(self):\n"
        "        self.send_response(200)\n"
        "        self.send_header('Content-Length', '2')\n"
        "        self.end_headers()\n"
        "        self.wfile.write(b'ok')\n"
        "    def log_message(self, *a): pass\n"
        f"h.ThreadingHTTPServer(('127.0.0.1', {port}), H).serve_forever()\n"
    )
    with _listening([sys.executable, "-c", code], port):
        yield f"http://127.0.0.1:{port}/"


def test_sqlalchemy(postgres: Postgres) -> None:
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    made = """
import sqlalchemy, psycopg
engine = sqlalchemy.create_engine(
    "postgresql+psycopg://", creator=lambda: psycopg.connect(URL))
"""
    used = """
with engine.connect() as connection:
    return connection.execute(sqlalchemy.text("select 42")).scalar()
"""
    works("SQLAlchemy", made, used, postgres.url)


def test_psycopg_pool(postgres: Postgres) -> None:
    pytest.importorskip("psycopg_pool")
    made = """
from psycopg_pool import ConnectionPool
def new_pool():
    return ConnectionPool(URL, min_size=1, max_size=2, open=True)
pool = new_pool()
"""
    used = """
with pool.connection(timeout=10) as connection:
    return connection.execute("select 42").fetchone()
"""
    works("psycopg_pool", made, used, postgres.url)


def test_httpx(web: str) -> None:
    pytest.importorskip("httpx")
    made = "import httpx\nclient = httpx.Client()"
    works("httpx", made, "return client.get(URL).text", web)


def test_requests(web: str) -> None:
    pytest.importorskip("requests")
    made = "import requests\nsession = requests.Session()"
    works("requests", made, "return session.get(URL).text", web)


REDIS = """
import socketserver, sys
class Handler(socketserver.StreamRequestHandler):
    def handle(self):  # answers every command: enough of the protocol for PING
        while True:
            line = self.rfile.readline()
            if not line:
                return
            words = []
            for _ in range(int(line[1:])):
                size = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(size + 2)[:-2].upper())
            self.wfile.write(b"+PONG\\r\\n" if words[0] == b"PING" else b"+OK\\r\\n")
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def pinged() -> Iterator[int]:
    """The port of what answers as Redis does to PING: here where there is none."""
    port = free_port()
    with _listening([sys.executable, "-c", REDIS, str(port)], port):
        yield port


def test_redis_needs_none(pinged: int) -> None:
    pytest.importorskip("redis")
    made = """
import redis
client = redis.Redis(port=PORT, protocol=2)
"""
    works("", made, "return client.ping()", port=pinged)


def test_executors() -> None:
    made = """
from multiprocessing.pool import ThreadPool
pool = ThreadPool(1)
"""
    works("multiprocessing.pool", made, "return pool.apply(pow, (2, 10))")


def test_a_thread_of_the_application() -> None:
    made = """
import queue, threading
class Poller:
    def __init__(self):
        self.stopped, self.thread = threading.Event(), None
        self.beats = queue.SimpleQueue()
    def run(self):
        while not self.stopped.wait(0.005):
            self.beats.put(1)
    def start(self):
        self.stopped.clear()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
    def stop(self):
        self.stopped.set()
        self.thread.join()
poller = Poller()
poller.start()
"""
    works("A thread", made, "return poller.beats.get(timeout=10)")


MANAGED = """
import multiprocessing, os, signal, sys
from cowpreload.closing import close_all
manager = multiprocessing.get_context("fork").Manager()
shared = manager.dict(x=1)
assert shared.get("x") == 1
if sys.argv[1] == "close":
    assert close_all() == []
def worker(number):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(30)  # it may wait for an answer that the other has got
    for turn in range(300):
        shared[number, turn] = number
        if shared.get((number, turn)) != number:
            os._exit(1)
    os._exit(0)
pids = [worker(1), worker(2)]
codes = {os.waitpid(pid, 0)[1] for pid in pids}
print(codes == {0})
"""


@pytest.mark.parametrize("close", ["close", *deep("not")])
def test_a_manager_that_the_master_has_used_mixes_no_answers(close: str) -> None:
    """Nothing of it to be written: its proxies connect anew."""
    done = run("-W", "ignore::DeprecationWarning", "-c", MANAGED, close)
    assert done.stdout == f"{close == 'close'}\n", done.stderr
