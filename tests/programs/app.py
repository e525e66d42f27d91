"""A small WSGI and ASGI application whose every behaviour a test can ask for.

Environment: HEAP_MB of inherited objects; EXIT_LOG, a file that exit handlers append
to; BREAK, ways to be unfit for a preload, with commas.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import datetime
import gc
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import finalized  # noqa: F401 - holds an object that writes when it is freed

import cowpreload

HEAP = [
    {"number": i, "name": f"name {i}"}
    for i in range(int(os.environ.get("HEAP_MB", "4")) * 2500)
]
# What only the zone itself holds: the walk has to ask for it.
ZONE = datetime.timezone(datetime.timedelta(hours=1), "".join(["a ", "zone"]))
GROWN: list[bytearray] = []
LOG = os.environ.get("EXIT_LOG")
BREAK = os.environ.get("BREAK", "").split(",")
KEPT: list[object] = []


def note(text: str) -> None:
    if LOG:
        with open(LOG, "a") as log:
            log.write(f"{os.getpid()} {text}\n")


atexit.register(note, "first")
atexit.register(note, "second")

if "import" in BREAK:
    raise ImportError("the application does not import")
if "thread" in BREAK:
    threading.Thread(target=lambda: time.sleep(600), name="poller", daemon=True).start()
if "connection" in BREAK:
    listener = socket.create_server(("127.0.0.1", 0))
    KEPT += [listener, socket.create_connection(listener.getsockname())]
if "file" in BREAK:
    KEPT.append(open(f"{LOG}.open", "w"))
if "lock" in BREAK:
    import fcntl

    KEPT.append(open(f"{LOG}.lock", "w"))
    fcntl.flock(KEPT[-1], fcntl.LOCK_EX)  # type: ignore[arg-type]
if "full-pipe" in BREAK:
    os.set_blocking(2, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(2, b"x" * 4096)
if "time" in BREAK:  # children live ten days ahead
    ctypes.CDLL(None).unshare(0x80)
    Path("/proc/self/timens_offsets").write_text("monotonic 864000 0")
if "slow-exit" in BREAK:
    atexit.register(time.sleep, 1.5)
cowpreload.before_fork(lambda: note("before_fork"))


def grow(mb: int) -> None:
    GROWN.append(bytearray(b"x") * (mb << 20))


def late_thread(seconds: float) -> None:
    time.sleep(seconds)
    note("thread")


def answer(path: str, query: str) -> tuple[int, str]:
    """Status and text for one request."""
    given = {key: values[0] for key, values in parse_qs(query).items()}
    if path == "/sum":
        return 200, str(sum(range(int(given["n"]))))
    if path == "/growsum":
        grow(int(given["mb"]))
        return 200, str(sum(range(int(given["n"]))))
    if path == "/read":
        return 200, str(sum(len(each["name"]) for each in HEAP))  # type: ignore[misc]
    if path == "/grow":
        grow(int(given["mb"]))
        return 200, "grown"
    if path == "/climb":
        for _ in range(50):
            grow(int(given["mb"]) // 50)
            time.sleep(float(given["s"]) / 50)
        return 200, "climbed"
    if path == "/hang":
        if "when" in given:
            open(f"{given['when']}.asked", "w").close()
            while not os.path.exists(given["when"]):
                time.sleep(0.02)
        grow(int(given.get("mb", "0")))
        time.sleep(float(given["s"]))
        return 200, "woken"
    if path == "/hold":  # in C, with Python's lock, as much and as long as it says
        grow(int(given.get("mb", "0")))
        ctypes.PyDLL(None).usleep(int(float(given["s"]) * 1_000_000))
        return 200, "let go"
    if path == "/close":  # as a daemon's start does, in the wrong process
        os.closerange(3, 256)
        return 200, "closed"
    if path == "/me":
        me = cowpreload.worker()
        return 200, json.dumps({"pid": os.getpid(), "worker": me and vars(me)})
    if path == "/register":
        atexit.register(note, "worker")
        return 200, "registered"
    if path == "/thread":
        seconds = float(given.get("s", "0.3"))
        # What a greenlet starts is a daemon otherwise, as its own thread is one.
        thread = threading.Thread(target=late_thread, args=[seconds], daemon=False)
        thread.start()
        return 200, "started"
    if path == "/poller":
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        return 200, "started"
    if path == "/gc":
        gc.enable()
        before = sum(each["collections"] for each in gc.get_stats())
        for _ in range(20_000):
            cycle: list[object] = []
            cycle.append(cycle)
        after = sum(each["collections"] for each in gc.get_stats())
        return 200, json.dumps({"collections": after - before})
    if path == "/immortal":
        held = {"heap": HEAP, "item": HEAP[0], "name": HEAP[0]["name"]}
        held["code"] = answer.__code__.co_consts  # type: ignore[assignment]
        held["zone"] = ZONE.tzname(None)  # type: ignore[assignment]
        # An immortal object's count is no count, but a number above this.
        counts = {key: sys.getrefcount(each) for key, each in held.items()}
        return 200, json.dumps({key: each > 1 << 29 for key, each in counts.items()})
    if path == "/deaf":
        signal.signal(signal.SIGTERM, lambda *_: note("SIGTERM"))
        return 200, "deaf"
    if path == "/threads":
        return 200, json.dumps([each.name for each in threading.enumerate()])
    if path == "/raise":
        raise ZeroDivisionError("the page is broken")
    if path in ("/500", "/404"):
        return int(path[1:]), "no"
    return 200, "ok"


def application(environ, start_response):  # type: ignore[no-untyped-def]
    status, text = answer(environ["PATH_INFO"], environ["QUERY_STRING"])
    body = text.encode()
    start_response(
        f"{status} STATUS",
        [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))],
    )
    if environ["PATH_INFO"] == "/begin":
        return in_two(body, float(parse_qs(environ["QUERY_STRING"])["s"][0]))
    return [body]


def in_two(body: bytes, seconds: float) -> Iterator[bytes]:
    """So that a client knows that a worker has its request."""
    yield body[:1]
    time.sleep(seconds)
    yield body[1:]


async def echo(receive, send):  # type: ignore[no-untyped-def]
    """A websocket that says again what it is told."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            event = message["type"].removeprefix("lifespan.")
            note(f"lifespan {event}")
            await send({"type": f"lifespan.{event}.complete"})
            if event == "shutdown":
                return
    if scope["type"] == "websocket":
        await echo(receive, send)
        return
    if scope["path"] == "/await":
        await asyncio.sleep(float(parse_qs(scope["query_string"].decode())["s"][0]))
    status, text = answer(scope["path"], scope["query_string"].decode())
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if scope["path"] == "/begin":
        await send({"type": "http.response.body", "body": body[:1], "more_body": True})
        await asyncio.sleep(float(parse_qs(scope["query_string"].decode())["s"][0]))
        body = body[1:]
    await send({"type": "http.response.body", "body": body})
