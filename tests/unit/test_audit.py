"""The audit looks and does not touch, finds what is lost and nothing that is not."""

from __future__ import annotations

import os
import re

import pytest
from conftest import PYPY, run

# In a process of its own: other tests' libraries may have threads. The open connection
# makes the audit look for TLS sessions, that is, at every object.
LOOK = """
import socket, ssl, weakref
from cowpreload.audit import audit, descriptors

class Lazy:
    built = 0

    @property
    def __class__(self):  # as Django's LazyObject: asking for it builds the object
        Lazy.built += 1
        return str

lazy, target = Lazy(), set()
held = [lazy, weakref.proxy(target)]
del target
before, built = descriptors(), Lazy.built
pair = socket.socketpair()
print([each.what for each in audit(before)], Lazy.built - built)
"""


def test_lazy_objects_and_dead_proxies_are_left_alone() -> None:
    done = run("-c", LOOK)
    assert done.stdout == "['connection', 'connection'] 0\n", done.stderr


AROUND = """
import asyncio, ctypes, os, sys, threading, time
from cowpreload import origins
from cowpreload.audit import audit, descriptors
from cowpreload.closing import close_all
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
before, end = descriptors(), origins.record()
kept = []
libc = ctypes.CDLL(None, use_errno=True)
{code}
end()
assert close_all() == []
for each in audit(before, at_fork={at_fork}):
    print(each.what, each.where)
sys.stdout.flush()
os._exit(0)
"""


def findings(code: str, at_fork: bool = True, **environ: str) -> list[str]:
    """What the audit finds of what this code opened, a line each."""
    program = AROUND.replace("{code}", code).replace("{at_fork}", str(at_fork))
    done = run("-c", program, env={**os.environ, **environ})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("pipe", "kept = os.pipe()[1:]; os.close(kept[0] - 1)"),
        ("epoll", "import select; kept = select.epoll()"),
        ("inotify", "libc.inotify_init1(0)"),
        ("eventfd", "libc.eventfd(0, 0)"),
        ("timerfd", "libc.timerfd_create(1, 0)"),
        ("signalfd", "libc.signalfd(-1, bytes(128), 0)"),
        ("file", "import tempfile; kept = tempfile.TemporaryFile()"),
    ],
)
def test_descriptors_that_workers_would_share_are_found(what: str, code: str) -> None:
    (line,) = findings(code)
    assert line.startswith(f"{what} ")


def test_a_transaction_of_sqlite_that_is_open_at_the_fork_is_found(
    tmp_path: os.PathLike[str],
) -> None:
    """What the children write is in the master's transaction, and lost."""
    code = f"""
import sqlite3
kept = sqlite3.connect({f"{tmp_path}/file"!r}, isolation_level=None)
kept.execute("create table if not exists t(m text)")
kept.execute("begin immediate")
"""
    kinds = {line.rpartition("kind=")[2] for line in findings(code) if "lock" in line}
    assert "POSIX ADVISORY WRITE" in kinds
    committed = code + 'kept.execute("commit")\n'
    assert [line.split()[0] for line in findings(committed)] == ["file"]


SHARED = {
    "appended": "kept = open('FILE', 'a+b', buffering=0)",
    "mapped": """
import mmap
kept = open("FILE", "w+b", buffering=0)
os.ftruncate(kept.fileno(), 4096)
held = mmap.mmap(kept.fileno(), 4096)
""",
    "multiprocessing": """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
kept = [multiprocessing.Queue(), multiprocessing.Pipe(), ProcessPoolExecutor(1)]
""",
    "ended": """
from concurrent.futures import ProcessPoolExecutor
kept = ProcessPoolExecutor(1)
kept.submit(int).result()
""",
    "fork server": """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
kept = ProcessPoolExecutor(1, multiprocessing.get_context("forkserver"))
kept.submit(int).result()
""",
    "listening": """
import socket
kept = [socket.create_server(("127.0.0.1", 0))]
kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
kept[1].connect(("127.0.0.1", 9))
""",
    "executor": """
from concurrent.futures import ThreadPoolExecutor
kept = ThreadPoolExecutor(2)
kept.submit(int).result()
""",
}


@pytest.mark.parametrize("kind", SHARED)
def test_what_is_made_to_be_shared_or_comes_back_is_none(
    kind: str, tmp_path: os.PathLike[str]
) -> None:
    assert findings(SHARED[kind].replace("FILE", f"{tmp_path}/file")) == []


def test_an_event_loop_made_at_import_is_one_finding() -> None:
    """And not an epoll and two connections of unknown origin."""
    (line,) = findings("kept = asyncio.new_event_loop()")
    assert line.startswith("event-loop type=asyncio.unix_events._UnixSelectorEventLoop")


BOUND = """
class Client:
    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.answer = self.loop.create_future()
held = asyncio.Lock()

async def app(scope, receive, send):
    assert scope["type"] == "http"
    kept.append(Client())
    await held.acquire() if not held.locked() else None
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})

warm_up(app, Settings(warmup=("/",), warmup_repeat=2))
"""


def test_what_stays_bound_to_a_closed_loop_is_found() -> None:
    """A client that keeps it, a future that nobody ends, a lock left locked."""
    found = set(findings(BOUND))
    assert "loop-bound type=__main__.Client count=2" in found
    assert "loop-bound type=_asyncio.Future count=2" in found
    assert "locked type=asyncio.locks.Lock count=1" in found
    assert len(found) == 3


ODD_CLIENT = """
class Client:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.loop.close()
    @property
    def closed(self):
        raise RuntimeError("not connected")
kept = Client()
"""


def test_a_client_that_cannot_say_whether_it_is_closed_ends_no_audit() -> None:
    """It holds the closed loop all the same."""
    assert findings(ODD_CLIENT) == ["loop-bound type=__main__.Client count=1"]


ODD_LOOP = """
class Loop(asyncio.AbstractEventLoop):  # is_closed() raises NotImplementedError
    pass
kept = [Loop(), os.pipe()]
"""


def test_what_the_audit_cannot_look_at_is_a_finding_and_hides_no_other() -> None:
    failed, read, write = findings(ODD_LOOP)
    assert failed == "unaudited part=event-loops error=NotImplementedError"
    assert read.startswith("pipe end=read ")
    assert write.startswith("pipe end=write ")


PROXIED = """
import functools
class Proxy:  # as ServerProxy and Mock: each attribute is there
    def __getattr__(self, name):
        return Proxy()
    def __call__(self):
        time.sleep(600)
class Unbound:  # as LocalProxy outside of a request: none is
    def __getattr__(self, name):
        raise RuntimeError("no request")
    def __call__(self):
        time.sleep(600)
kept = [Proxy(), Unbound(), functools.partial(Proxy())]
for each in kept:
    threading.Thread(target=each, name="poll", daemon=True).start()
"""


def test_a_thread_that_runs_a_proxy_does_not_hang_the_audit() -> None:
    runs = [line.split()[2] for line in findings(PROXIED)]
    assert runs == ["runs=Proxy", "runs=Unbound", "runs=Proxy"]


THREADS = """
def poll():
    time.sleep(600)

def start(name):
    threading.Thread(target=poll, name=name, daemon=True).start()

start("early")

def application(environ, start_response):
    start("late")
    start_response("200 OK", [])
    return []

async def app(scope, receive, send):
    if scope["type"] == "http":
        start("async")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

warm_up(application, Settings(warmup=("/shop?page=1",), warmup_repeat=1))
warm_up(app, Settings(warmup=("/news",), warmup_repeat=1))
"""


def test_a_thread_is_told_by_who_started_it_and_when() -> None:
    found = {line.split()[1]: line for line in findings(THREADS)}
    for name, during in {
        "early": "import",
        "late": "warmup=/shop?page=1",
        "async": "warmup=/news",
    }.items():
        line = found[f"name={name}"]
        assert re.search(r"runs=<string>:\d+\(poll\) started-by=<string>:\d+", line)
        assert line.endswith(f" during={during}")


NATIVE = """
pthread = ctypes.c_ulong()
stay = ctypes.cast(libc.pause, ctypes.c_void_p)
libc.pthread_create(ctypes.byref(pthread), None, stay, None)
"""


def test_a_thread_of_a_c_library_is_found() -> None:
    (line,) = findings(NATIVE)
    assert line.startswith("native-thread name=")


BLAS = """
import numpy
grid = numpy.ones((600, 600))
grid @ grid
assert len(os.listdir("/proc/self/task")) > 1, "no thread: the test shows nothing"
"""


@pytest.mark.skipif(PYPY or os.cpu_count() == 1, reason="numpy needs no thread here")
def test_threads_that_openblas_restarts_are_none() -> None:
    pytest.importorskip("numpy")
    assert findings(BLAS, OPENBLAS_NUM_THREADS="2") == []


# What each needs to have a thread or a file open; all of them notice the fork.
NOTICING = {
    "sentry_sdk": """
import sentry_sdk
sentry_sdk.init(dsn="http://key@127.0.0.1:9/1")
sentry_sdk.capture_message("hello")
""",
    "prometheus_client": """
import prometheus_client
prometheus_client.Counter("requests", "served").inc()
assert os.listdir(os.environ["PROMETHEUS_MULTIPROC_DIR"])
""",
    "pymongo": """
import pymongo
kept = pymongo.MongoClient("mongodb://127.0.0.1:9", serverSelectionTimeoutMS=50)
try:
    kept.admin.command("ping")
except pymongo.errors.ServerSelectionTimeoutError:
    pass
""",
    "opentelemetry.sdk": """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
kept = TracerProvider()
kept.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=open(os.devnull))))
""",
}


@pytest.mark.parametrize("library", NOTICING)
def test_libraries_that_notice_the_fork_are_none(
    library: str, tmp_path: os.PathLike[str]
) -> None:
    pytest.importorskip(library)
    code = NOTICING[library]
    if library != "prometheus_client":
        code += "\nassert threading.active_count() > 1, 'the test shows nothing'"
    assert findings(code, PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) == []


def test_what_needs_pythons_fork_callbacks_is_found_where_there_are_none() -> None:
    """uWSGI calls them only if it is told to."""
    pytest.importorskip("opentelemetry.sdk")
    lines = findings(NOTICING["opentelemetry.sdk"], at_fork=False)
    assert [line.split()[0] for line in lines] == ["thread"]


MANY = """
import gc

class Client:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.answer = self.loop.create_future()
        self.loop.close()

kept = [Client() for _ in range(20)]
looked = gc.get_referrers
def count(*objects):
    print("looked")
    return looked(*objects)
gc.get_referrers = count
"""


def test_many_closed_loops_are_one_look_at_the_heap_and_one_finding() -> None:
    """Each look is a walk of the whole heap: 13 s instead of 1 with 40 loops."""
    found = findings(MANY)
    # For the loops, for the dicts that hold them; and again, as there are findings.
    assert found.count("looked") <= 4
    assert sorted(set(found) - {"looked"}) == [
        "loop-bound type=__main__.Client count=20",
        "loop-bound type=_asyncio.Future count=20",
    ]
