"""Pages that do not answer, each in its own way; "begun" on stderr when one has begun.

WSGI is `application`, ASGI `asgi`.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Iterator


def begun(path: str) -> None:
    os.write(2, f"begun {path}\n".encode())


def never_ending() -> Iterator[bytes]:
    while True:
        time.sleep(0.01)
        yield b"x" * 1024


def catch_all() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001 - that is the page that is tried
            print("caught", file=sys.stderr)


def wait(path: str) -> None:
    if path == "/sleep":
        time.sleep(600)
    if path == "/native":  # C code that neither returns nor looks at signals
        collections.deque(itertools.repeat(0), maxlen=0)
    if path == "/catch":
        catch_all()
    if path == "/once":
        with contextlib.suppress(BaseException):
            time.sleep(600)
    if path == "/alarm":
        import signal

        signal.signal(signal.SIGALRM, lambda number, frame: None)
        time.sleep(600)
    if path == "/short":
        time.sleep(1.5)


def application(environ, start_response):  # type: ignore[no-untyped-def]
    path = environ["PATH_INFO"]
    start_response("200 OK", [])
    if "cowpreload.warmup" in environ:
        begun(path)
        wait(path)
        if path == "/stream":
            return never_ending()
    return [b"ok"]


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan here")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    path = scope["path"]
    if "cowpreload.warmup" in scope:
        begun(path)
        if path == "/await":
            await asyncio.sleep(600)
        if path == "/thread":
            await asyncio.to_thread(wait, "/sleep")
        while path == "/stream":
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        wait(path)
    await send({"type": "http.response.body", "body": b"ok"})
