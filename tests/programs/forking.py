"""An application that forks in a request, as multiprocessing does."""

from __future__ import annotations

import datetime
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import cowpreload

# What only the zone itself holds: the walk has to ask for it.
ZONE = datetime.timezone(datetime.timedelta(hours=1), "".join(["a ", "zone"]))


def fork() -> str:
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 3.12 and newer warn of the watching thread
        child = os.fork()
    if child == 0:
        os.write(into, f"child worker={cowpreload.worker()}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(out, 100).decode()
    os.close(out)
    os.close(into)
    return said


def terminate() -> str:
    """Fork a child in a request, end it by SIGTERM; its wait status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        while True:
            time.sleep(60)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        pid, _ = os.waitpid(child, os.WNOHANG)
        if pid:
            return "ended"
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def application(environ, start_response):  # type: ignore[no-untyped-def]
    path = environ["PATH_INFO"]
    text = "ok"
    if path == "/fork":
        text = fork()
    elif path == "/terminate":
        text = terminate()
    elif path == "/immortal":
        # An immortal object's count is no count, but a number above this.
        held = (terminate.__code__.co_consts, ZONE.tzname(None))
        text = str(all(sys.getrefcount(each) > 1 << 29 for each in held))
    elif path == "/wait":
        try:
            text = f"child {os.waitpid(-1, os.WNOHANG)}"
        except ChildProcessError:
            text = "no children"
    elif path == "/comms":
        text = " ".join(p.read_text() for p in Path("/proc/self/task").glob("*/comm"))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [text.encode()]
