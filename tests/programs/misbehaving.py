"""Pages that a trial has to drop, or to let pass, each by its name; others are fine.

Flask is `application`, FastAPI `asgi`, both with the same pages. MISBEHAVE_IN: the
process in which pages misbehave: `trial` (default), `master`, or `both`. A page says
`asked PROCESS /NAME` on stderr when it is asked in a warm up. PAGES: the only ones.
MEMORY: what some of them take, in bytes.
AT_IMPORT: `thread`, or `connection` to the port PORT, which before_fork closes and
after_fork opens anew, and on which each page says the pid of its process.
"""

from __future__ import annotations

import asyncio
import collections
import ctypes
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import cowpreload

MASTER = os.getpid()
WHERE = os.environ.get("MISBEHAVE_IN", "trial")
HELD: list[Any] = []
AT_IMPORT = os.environ.get("AT_IMPORT", "")
MEMORY = int(os.environ.get("MEMORY", 200 << 20))
LEFT = os.environ.get("LEFT_FILE", os.devnull)


def hang() -> None:
    time.sleep(600)


def lock() -> None:
    sys.modules["uwsgi"].sharedarea_rlock(0)
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_lock() -> None:
    sys.modules["uwsgi"].sharedarea_wlock(0)
    sys.modules["uwsgi"].sharedarea_unlock(0)


def hang_native() -> None:  # C code that neither returns nor looks at signals
    collections.deque(itertools.repeat(0), maxlen=0)


def leave() -> None:
    os._exit(3)


def leave_in_c() -> None:
    ctypes.CDLL(None).exit(5)


def fault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def raise_it() -> None:
    raise ZeroDivisionError("the page is broken")


def end() -> None:
    sys.exit(7)


def leap() -> None:
    raise asyncio.CancelledError  # no Exception


def exit_generator() -> None:
    raise GeneratorExit


def thread() -> None:
    HELD.append(threading.Thread(target=time.sleep, args=(600,), daemon=True))
    HELD[-1].start()


def brief_thread() -> None:
    threading.Thread(target=time.sleep, args=(0.1,)).start()


def connection() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    HELD.extend([listener, socket.create_connection(listener.getsockname())])


def file() -> None:
    HELD.append(open(LEFT, "w"))


def process() -> None:
    HELD.append(subprocess.Popen(["sleep", "600"]))


def memory() -> None:
    HELD.append(bytearray(b"x") * MEMORY)


def brief_memory() -> None:
    memory()
    HELD.pop()


PAGES = {
    "hang": hang,
    "native": hang_native,
    "leave": leave,
    "leave-in-c": leave_in_c,
    "fault": fault,
    "raise": raise_it,
    "end": end,
    "leap": leap,
    "generator": exit_generator,
    "thread": thread,
    "brief-thread": brief_thread,
    "connection": connection,
    "file": file,
    "child": process,
    "memory": memory,
    "brief-memory": brief_memory,
}
STATUSES = {"fails": 500, "login": 302, "secret": 403}
FINE = ("", "plain", "a b", "100%", "ümlaut", "last")


def misbehaves() -> bool:
    trial = os.getpid() != MASTER
    return WHERE in ("both", "trial" if trial else "master")


class Link:
    """A connection that two processes must not use."""

    def __init__(self) -> None:
        self.socket: socket.socket | None = None

    def open(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.socket = None

    def say(self) -> None:
        if self.socket is None:
            self.open()
        assert self.socket is not None
        self.socket.sendall(b"%d\n" % os.getpid())


LINK = Link()


def answer(name: str, warming: bool) -> int:
    """The status of a page, after what it does."""
    if AT_IMPORT == "connection":
        LINK.say()
    if not warming:
        if name == "lock":
            wait_for_lock()
        return 200
    who = "master" if os.getpid() == MASTER else "trial"
    os.write(2, f"asked {who} /{name}\n".encode())
    if misbehaves():
        if name in PAGES:
            PAGES[name]()
        elif name == "lock":
            lock()
        return STATUSES.get(name, 200)
    return 200


def names() -> list[str]:
    only = os.environ.get("PAGES")
    return only.split(",") if only is not None else [*FINE, *PAGES, *STATUSES]


def _flask() -> Any:
    import flask

    made = flask.Flask(__name__)

    def add(name: str) -> None:
        def page() -> Any:
            status = answer(name, "cowpreload.warmup" in flask.request.environ)
            return f"{flask.request.script_root} {os.getpid()}", status

        made.add_url_rule(f"/{name}", f"page {name}", page)

    for each in names():
        add(each)
    made.add_url_rule("/logout", "logout", lambda: answer("logout", True) and "out")
    made.add_url_rule("/number/<int:n>", "number", lambda n: str(n))
    return made


def _fastapi() -> Any:
    import fastapi

    api = fastapi.FastAPI(openapi_url=None)

    def add(name: str) -> None:
        def page(request):  # type: ignore[no-untyped-def]
            status = answer(name, "cowpreload.warmup" in request.scope)
            return fastapi.Response(str(os.getpid()), status)

        page.__annotations__ = {"request": fastapi.Request}
        api.add_api_route(f"/{name}", page)

    for each in names():
        add(each)
    return api


if AT_IMPORT == "thread":
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
if AT_IMPORT == "connection":
    LINK.open()
    cowpreload.before_fork(LINK.close)
    cowpreload.after_fork(LINK.open)


def __getattr__(name: str) -> Any:
    if name != "asgi":
        raise AttributeError(name)
    globals()[name] = _fastapi()
    return globals()[name]


application = _flask()
