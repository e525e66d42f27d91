"""Writes to every kind of buffer and closes none: what is in the files afterwards?

Environment: UNWRITTEN, a directory. `/write` opens files in the worker and answers with
its pid, `?settle` settles it then; `/stall` waits for no reader; `/full` writes to a
full disk and closed files.
"""

from __future__ import annotations

import ctypes
import dbm.dumb
import gc
import gzip
import os
import shelve
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from urllib.parse import parse_qs

import cowpreload

DIRECTORY = Path(os.environ["UNWRITTEN"])
KEPT: list[object] = []
C = ctypes.CDLL(None)
C.fopen.restype = ctypes.c_void_p
C.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
C.flockfile.argtypes = [ctypes.c_void_p]

PRELOADED = open(DIRECTORY / "preloaded", "a")
PRELOADED.write("master\n")
PRELOADED_TEMPORARY = tempfile.NamedTemporaryFile(dir=DIRECTORY, prefix="preloaded-")
KEPT += [PRELOADED, PRELOADED_TEMPORARY]


def write(tag: str) -> str:
    pid = os.getpid()
    PRELOADED.write(f"worker {pid}\n")
    name = str(DIRECTORY / f"{pid}{tag}")
    text = open(f"{name}.text", "w")
    text.write("line\n")
    binary = open(f"{name}.binary", "wb")
    binary.write(b"line\n")
    random = open(f"{name}.random", "w+b")
    random.write(b"line\n")
    zipped = gzip.open(f"{name}.gz", "wt")
    zipped.write("line\n")
    over = gzip.GzipFile(fileobj=open(f"{name}.over", "wb"), mode="wb")
    over.write(b"line\n")
    archive = zipfile.ZipFile(f"{name}.zip", "w")
    archive.writestr("line", "line\n")
    member = archive.open("member", "w")
    member.write(b"line\n")
    # Not what shelve.open() takes from 3.13 on: SQLite is for one thread alone.
    shelf = shelve.Shelf(dbm.dumb.open(f"{name}.shelf"), writeback=True)
    shelf["lines"] = []
    shelf["lines"].append("line\n")
    temporary = tempfile.NamedTemporaryFile(dir=DIRECTORY, prefix="young-")
    stdio = C.fopen(f"{name}.stdio".encode(), b"w")
    C.fputs(b"line\n", stdio)
    KEPT.extend([text, binary, random, zipped, over, archive, member, shelf, temporary])
    return str(pid)


def fifo(name: str) -> int:
    """The writing end of a pipe that is full, and that nobody reads."""
    os.mkfifo(DIRECTORY / name)
    held = os.open(DIRECTORY / name, os.O_RDWR | os.O_NONBLOCK)
    try:
        while True:
            os.write(held, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(held, True)
    return held


def stall(what: str) -> str:
    if what == "nonblocking":
        writer = os.fdopen(fifo("nonblocking"), "w")
        os.set_blocking(writer.fileno(), False)
        writer.write("line\n")
        KEPT.append(writer)
    elif what == "lock":  # another thread waits in a write, with the writer's lock
        buffer = os.fdopen(fifo("lock"), "wb")
        KEPT.append(buffer)
        thread = threading.Thread(
            target=buffer.write, args=[b"x" * (1 << 20)], daemon=True
        )
        thread.start()
        call = Path(f"/proc/self/task/{thread.native_id}/syscall")
        while not call.read_text().startswith("1 "):  # a write
            time.sleep(0.01)
    elif what == "stdio-lock":
        stream = C.fopen(b"/dev/null", b"w")
        thread = threading.Thread(target=C.flockfile, args=[stream])
        thread.start()
        thread.join()
    return write("")


class Raises:
    """A file's every method but those that say it is one."""

    closed = False

    def __getattr__(self, name: str) -> object:
        raise SystemExit(f"no {name}")


def full() -> str:
    disk = open("/dev/full", "w")
    disk.write("line\n")
    closed = open(DIRECTORY / "closed", "w")
    closed.write("line\n")
    os.close(closed.fileno())

    class Upload(gzip.GzipFile):
        def close(self) -> None:
            raise KeyboardInterrupt

    upload = Upload(DIRECTORY / "upload", "wb")
    stream = C.fopen(b"/dev/full", b"w")
    C.fputs(b"line\n", stream)
    KEPT.extend([disk, closed, upload, Raises()])
    return write("")


def answer(path: str, query: str) -> str:
    given = {key: values[0] for key, values in parse_qs(query).items()}
    if path.endswith("/write"):
        pid = write(given.get("tag", ""))
        if "settle" in given:
            assert cowpreload.settle()
        return pid
    if path == "/stall":
        return stall(given["what"])
    if path == "/frozen":
        return str(gc.get_freeze_count())
    if path == "/full":
        return full()
    return "ok"


def application(environ, start_response):  # type: ignore[no-untyped-def]
    body = answer(environ["PATH_INFO"], environ["QUERY_STRING"]).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] != "http":
        return
    body = answer(scope["path"], scope["query_string"].decode()).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
