"""Pages that a worker makes at their first request, for a master that learns of them.

`application` and `asgi`: `/kind/NAME/NUMBER` makes 4 MB of heap for each NAME, once a
process, and answers with the pid and the pid of the process that made it. A NAME of
PLANTS makes none: it misbehaves in a warm up, where its environment variable says:
HANG=master, or THREAD=trial. NEVER=1: each request makes its heap anew, so that no warm
up helps. KEEP_MORTAL=1: a part of the heap is to stay mortal. A request with a cookie
is refused. BEAT=FILE: a thread of the master writes to it. `/transaction/NUMBER` writes
it to the database DATABASE_FILE in one transaction, which ends when there is a file of
that name with `.go` behind it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import os
import queue
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path

import cowpreload

MASTER = os.getpid()
MADE: dict[str, tuple[int, list[object]]] = {}
HELD: list[object] = []
QUEUE: queue.Queue[int] = queue.Queue()


if os.environ.get("KEEP_MORTAL"):
    cowpreload.keep_mortal(MADE)


@cowpreload.before_fork
def before_fork() -> None:
    os.write(2, b"before_fork\n")
    QUEUE.join()  # as a client that is flushed, whose thread is gone


def beat(file: str) -> None:
    """In a thread: make and drop objects of many kinds, and say that it lives."""
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        kept = [{str(number): [number]} for number in range(500)]
        os.write(log, b"%d\n" % len(kept))
        time.sleep(0.01)


if "BEAT" in os.environ:
    threading.Thread(target=beat, args=(os.environ["BEAT"],), daemon=True).start()


def catch_all() -> None:
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        with contextlib.suppress(BaseException):
            time.sleep(4)


def leave_in_c() -> None:
    atexit.register(os.write, 2, b"exit handlers of a trial\n")
    ctypes.CDLL(None).exit(5)


def leap() -> None:
    raise asyncio.CancelledError


def connect() -> None:
    HELD.append(sqlite3.connect(os.environ["DATABASE_FILE"]))
    HELD[-1].execute("select * from sqlite_master").fetchone()  # type: ignore[attr-defined]


def transact(number: int) -> str:
    file = os.environ["DATABASE_FILE"]
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("begin immediate")
        database.execute("insert into entry values (?)", (number,))
        os.write(2, f"begun {number}\n".encode())
        until = time.monotonic() + 100
        while not Path(f"{file}.go").exists() and time.monotonic() < until:
            time.sleep(0.05)
        database.execute("commit")
    return f"committed {number}"


PLANTS = {
    "hang": lambda: time.sleep(600),
    "catch": catch_all,
    "raise": lambda: 1 / 0,
    "end": lambda: sys.exit(7),
    "thread": lambda: threading.Thread(
        target=time.sleep, args=(600,), daemon=True
    ).start(),
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "slow": lambda: time.sleep(0.7),
    "leap": leap,
    "database": connect,
    "memory": lambda: bytearray(b"x") * (500 << 20) and None,
    "finish": leave_in_c,
    "count": lambda: QUEUE.put(1),
}


def plant(name: str) -> None:
    who = "master" if os.getpid() == MASTER else "trial"
    os.write(2, f"asked {who} {name}\n".encode())
    if who == os.environ.get(name.upper()):
        PLANTS[name]()


def answer(path: str, warming: bool) -> str:
    parts = path.split("/")
    if parts[1] == "transaction":
        return transact(int(parts[2]))
    if parts[1] != "kind":
        return "ok"
    name = parts[2]
    if name in PLANTS:
        if warming:
            plant(name)
        return f"{os.getpid()} {os.getpid()} 18000"
    if name not in MADE or (os.environ.get("NEVER") and not warming):
        heap: list[object] = [{"number": i, "text": f"{name} {i}"} for i in range(9000)]
        MADE[name] = os.getpid(), heap
    return f"{os.getpid()} {MADE[name][0]} {sum(map(len, MADE[name][1]))}"


def application(environ, start_response):  # type: ignore[no-untyped-def]
    body = answer(environ["PATH_INFO"], "cowpreload.warmup" in environ).encode()
    status = "403 Forbidden" if "HTTP_COOKIE" in environ else "200 OK"
    start_response(status, [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] != "http":
        raise NotImplementedError
    body = answer(scope["path"], "cowpreload.warmup" in scope).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    status = 403 if b"cookie" in dict(scope["headers"]) else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
