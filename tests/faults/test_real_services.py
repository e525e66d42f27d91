"""Clients of real servers, made and used in the master, while workers are recycled.

PostgreSQL (Django's backend, with connections that are kept and with its pool;
psycopg's pool), Redis (Django's cache, redis-py), TLS (requests, httpx, sessions that
are resumed). No answer of one request reaches another, no connection is used by two
processes, and none is left behind by a worker that has gone.
"""

from __future__ import annotations

import itertools
import json
import threading
from importlib.util import find_spec

import pytest
from conftest import QUICK, Servers, full, require_class
from harness.load import Load
from harness.processes import wait_until
from harness.server import Server
from harness.services import Postgres, Redis, Tls

from cowpreload.board import open_board

CLIENTS = ("django", "pool", "redis", "requests", "httpx", "ticket")
LIBRARIES = ("psycopg_pool", "redis", "requests", "httpx")

# Before any server of these is started; the extra `recipes` has them.
pytestmark = pytest.mark.skipif(
    not all(map(find_spec, LIBRARIES)), reason="no " + ", ".join(LIBRARIES)
)


@pytest.fixture(name="environ")
def environment(
    postgres: Postgres, redis_server: Redis, tls_server: Tls
) -> dict[str, str]:
    """What the program needs to know."""
    return {
        "POSTGRES": postgres.url,
        "REDIS": str(redis_server.socket),
        "TLS": tls_server.url,
        "AUTHORITY": str(tls_server.authority),
        "PYTHONWARNINGS": "ignore",
    }


class Judge:
    """Reads each answer: the text that was asked for, by a connection of this process.

    A connection says which process has used it before; each process answers under its
    own number, so that no two names of one connection can be right.
    """

    def __init__(self) -> None:
        self.strangers: list[tuple[str, bytes]] = []
        self._lock = threading.Lock()

    def __call__(self, path: str, status: int, body: bytes) -> bool:
        if status != 200:
            return False
        text, whose, pid = json.loads(body)
        with self._lock:
            if whose not in ("", str(pid)):
                self.strangers.append((path, body))
        return bool(text == path.partition("=")[2])


def recycle(server: Server, times: int) -> None:
    """Let workers grow until so many have been recycled."""
    board = open_board(server.pid)

    def generations() -> int:
        return sum(each.generation for each in board)

    for _ in range(times):
        before = generations()
        server.get("/grow")
        wait_until(lambda before=before: generations() > before, 60, "a recycling")


def served(server: Server, clients: tuple[str, ...], times: int) -> Judge:
    """Ask by each client, from four sides, while workers are recycled."""
    numbers = itertools.count()
    paths = [f"/{each}?m=text-{next(numbers)}" for _ in range(50) for each in clients]
    judge = Judge()
    load = Load(server.port, paths, check=judge).start()
    try:
        recycle(server, times)
    finally:
        report = load.stop()
    assert (report.wrong, report.failed) == (0, 0), report.errors[:5]
    assert report.right > len(clients)
    assert not judge.strangers
    return judge


def all_of_workers(server: Server, clients: list[str]) -> bool:
    """Whether each connection is one of a living worker's; "-" has no name yet."""
    living = {str(pid) for pid in server.workers()}
    return {each for each in clients if each != "-"} <= living


@pytest.mark.parametrize(
    ("host", "pool"),
    [
        ("sync", "0"),
        *full(
            ("uwsgi", "0"),
            ("sync", "1"),
            ("uwsgi", "1"),
            ("threaded", "0"),
            ("threaded", "1"),
        ),
        *full(("asgi", "0"), ("asgi", "1"), ("gevent", "0"), ("uwsgi-threaded", "0")),
    ],
)
def test_no_connection_or_answer_is_shared_while_workers_are_recycled(
    servers: Servers,
    environ: dict[str, str],
    postgres: Postgres,
    redis_server: Redis,
    host: str,
    pool: str,
) -> None:
    clients = (*CLIENTS, "async") if host == "asgi" else CLIENTS
    options = {**QUICK, "cow-max-growth": "12M", "cow-warmup": "/all"}
    environ = {**environ, "POOL": pool}
    server = servers.on(host, options, app="clients", environ=environ)
    server.wait_serving(workers=2)
    assert " findings=0 " in server.wait_log("cow: preload objects=")
    served(
        server, clients, 3 if (host, pool) in (("sync", "0"), ("uwsgi", "0")) else 12
    )
    wait_until(
        lambda: (
            all_of_workers(server, postgres.clients())
            and all_of_workers(server, redis_server.clients())
        ),
        30,
        "none left behind",
    )
    server.stop()
    wait_until(lambda: not postgres.clients(), 30, "PostgreSQL alone")
    wait_until(lambda: not redis_server.clients(), 30, "Redis alone")


@pytest.mark.faults
@pytest.mark.parametrize("ours", [True, False], ids=["cow", "without-us"])
def test_greenlets_wait_for_postgresql_side_by_side(
    servers: Servers, environ: dict[str, str], postgres: Postgres, ours: bool
) -> None:
    """psycopg chooses how to wait when it is imported: the master is patched by then.

    Not with gunicorn's class and --preload, unless gunicorn.conf.py patches: Django's
    connection of the import is then one for all greenlets, and each is refused.
    """
    if ours:
        server = servers.on("gevent", workers=1, app="clients", environ=environ)
    else:
        require_class("gevent")
        arguments = ["-k", "gevent", "--preload", "--workers", "1"]
        environ = {**environ, "RECIPES": "0"}
        server = servers.gunicorn(*arguments, app="clients", environ=environ)
    load = Load(server.wait_serving().port, ["/wait?s=1"], requests=8).start()
    most = 0
    while load.report.right + load.report.wrong + load.report.failed < 8:
        most = max(most, len(postgres.clients("active")))
    report = load.finish()
    assert (report.wrong, report.failed) == (0 if ours else 8, 0), report.errors
    assert most == (4 if ours else 0)


@pytest.mark.faults
@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_pool_that_nobody_closes_is_named_and_used_by_two(
    servers: Servers, environ: dict[str, str], host: str
) -> None:
    """What happens without the recipe; and `Judge` sees it."""
    options = {"cow-warmup": "/all"}
    environ = {**environ, "RECIPES": "0"}
    server = servers.on(host, options, app="clients", environ=environ)
    server.wait_serving(workers=2)
    server.wait_log("cow: fork-safety thread name=pool-1-worker-0")
    server.wait_log("cow: fork-safety connection peer=/")
    server.wait_log("cow: fork-safety tls-connection peer=127.0.0.1")
    judge, numbers = Judge(), itertools.count()

    def mixed() -> bool:
        path = f"/pool?m=text-{next(numbers)}"
        status, body = server.get(path)
        return not judge(path, status, body) or bool(judge.strangers)

    wait_until(mixed, 30, "a connection of another process")
