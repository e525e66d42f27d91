"""Executors of every kind, made at import: `/KIND` gives work to one and waits for it.

Answers "ok", or the name of the error; work is awaited for three seconds. With FREEZE,
the application freezes itself, as users of gunicorn's --preload do.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from asgiref.sync import sync_to_async

SECONDS = 3


class Named(ThreadPoolExecutor):
    """As libraries subclass it."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        return super().submit(fn, *args, **kwargs)


POOL = ThreadPoolExecutor(2)
NAMED = Named(1)
BUSY = ThreadPoolExecutor(1)
# The others start sys.executable, which is no Python in uWSGI.
METHOD = "fork" if "uwsgi" in sys.modules else None
PROCESSES = ProcessPoolExecutor(1, multiprocessing.get_context(METHOD))
LOOP = asyncio.new_event_loop()
BEGIN = os.environ.get("BEGIN", "")


def work() -> str:
    return "ok"


if BEGIN == "import":
    # Work that ends with the master and work that waits for it.
    stay = threading.Event()
    threading._register_atexit(stay.set)  # type: ignore[attr-defined]
    BUSY.submit(stay.wait)
    BUSY.submit(work)
    POOL.submit(work).result()

if os.environ.get("FREEZE"):
    gc.collect()
    gc.freeze()


def answer(kind: str) -> str:
    pools = {"pool": POOL, "named": NAMED, "busy": BUSY, "processes": PROCESSES}
    if kind in pools:
        return pools[kind].submit(work).result(SECONDS)
    if kind == "loop":
        future = LOOP.run_in_executor(None, work)
        return LOOP.run_until_complete(asyncio.wait_for(future, SECONDS))
    if kind == "asgiref":

        async def call() -> str:
            return await asyncio.wait_for(sync_to_async(work)(), SECONDS)

        return asyncio.run(call())
    if kind == "frozen":
        return str(gc.get_freeze_count() > 0)
    if kind == "threads":
        return " ".join(sorted(each.name for each in threading.enumerate()))
    return "ok"


def body(path: str) -> bytes:
    try:
        return answer(path.strip("/")).encode()
    except (concurrent.futures.TimeoutError, asyncio.TimeoutError) as error:
        return type(error).__name__.encode()


def application(environ, start_response):  # type: ignore[no-untyped-def]
    text = body(environ["PATH_INFO"])
    # Processes that were forked in a request keep its connection open.
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    assert scope["type"] == "http"
    loop = asyncio.get_running_loop()
    kind = scope["path"].strip("/")
    if kind == "asgiref":
        text = (await asyncio.wait_for(sync_to_async(work)(), SECONDS)).encode()
    elif kind == "loop":
        text = (await asyncio.wait_for(loop.run_in_executor(None, work), 3)).encode()
    else:
        text = body(scope["path"])
    headers = [(b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})
