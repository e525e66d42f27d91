"""An application with after_fork callbacks; `/` gives what each saw.

AFTER_FORK=raise: the second one raises; AFTER_FORK=later: only in a second generation;
AFTER_FORK=/PATH: as long as there is this file.
"""

from __future__ import annotations

import json
import os

import cowpreload

SEEN: list[list[object]] = []
BUSY = os.environ.get("AFTER_FORK", "")


@cowpreload.after_fork
def first() -> None:
    worker = cowpreload.worker()
    SEEN.append(["first", os.getpid(), worker and worker.slot])


@cowpreload.after_fork
def second() -> None:
    worker = cowpreload.worker()
    later = BUSY == "later" and worker and worker.generation > 1
    if BUSY == "raise" or later or (BUSY.startswith("/") and os.path.exists(BUSY)):
        raise ZeroDivisionError("no poller")
    SEEN.append(["second", os.getpid(), len(SEEN)])


def application(environ, start_response):  # type: ignore[no-untyped-def]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [json.dumps({"pid": os.getpid(), "seen": SEEN}).encode()]


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    assert scope["type"] == "http"
    body = json.dumps({"pid": os.getpid(), "seen": SEEN}).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
