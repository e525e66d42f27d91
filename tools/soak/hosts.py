"""The servers that are soaked, with us and (the control) without.

Takes a name and a directory; gives a running server of the tests' kind. Each has a
configuration that can be changed while it runs (gunicorn) or a FIFO that it obeys
(uWSGI). Without us, the host's own recycling takes the place of ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import server as harness
from harness.processes import script
from harness.server import Server

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "tests" / "programs"
WORKERS = 4
LIMIT = "24M"
BUDGET = "100M"  # of a server that takes 70 to 130 by the other limits alone
TIMEOUT = 20  # seconds: gunicorn's, so that stalls are short; slower than any page
MARK = "SOAK_MARK"  # read by nobody but who looks for what was left behind
BEGUN = "begun"
WRITTEN = ("log", "events", "warm", BEGUN)  # by a server, in its directory

# Limits that act soon, and a warm up that finds something to do.
COW: Mapping[str, str] = {
    "cow-max-growth": LIMIT,
    "cow-max-private-hard": "160M",
    "cow-budget": BUDGET,
    "cow-check-interval": "0.5",
    "cow-min-lifetime": "2",
    "cow-jitter": "1",
    "cow-strikes": "2",
    "cow-warmup": "auto",
    "cow-warmup-worth": "4M",
}
RUNAWAY = 600  # MB: what a request asks for that the hard limit has to end
RECYCLED = 300  # requests of a worker of the control: as often as ours are recycled

# The worker class with us, and without; the application.
GUNICORN = {
    "sync": ("cow", "sync", "soaked:application"),
    "threads": ("cow", "gthread", "soaked:application"),
    "asgi": ("cow_asgi", "asgi", "soaked:asgi"),
}
UWSGI = "uwsgi-threads"
HOSTS = (*GUNICORN, UWSGI)
# Those that keep connections: uWSGI's http-socket closes each, and does not say so.
KEEP = ("threads", "asgi")


@dataclass(frozen=True)
class Started:
    """A server that runs.

    Attributes:
        directory: of its files.
        mark: in the environment of every process of it.
    """

    name: str
    server: Server
    directory: Path
    cow: bool
    mark: str

    @property
    def fifo(self) -> Path:
        """What uWSGI obeys."""
        return self.directory / "fifo"

    def configure(self, limit: str = LIMIT, budget: str = BUDGET) -> None:
        """Write gunicorn's configuration, for its next reload."""
        _configure(self.directory, self.name, self.cow, limit, budget)

    def tell(self, command: str) -> None:
        """Write one letter to uWSGI's FIFO; lost while it executes itself anew."""
        fd = os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(fd, command.encode())
        finally:
            os.close(fd)

    def begun(self) -> str:
        """Which worker has begun which request."""
        path = self.directory / BEGUN
        return path.read_text() if path.exists() else ""


def _configure(
    directory: Path, name: str, cow: bool, limit: str = LIMIT, budget: str = BUDGET
) -> None:
    ours, plain, _ = GUNICORN[name]
    values: dict[str, object] = {
        "workers": WORKERS,
        "worker_class": ours if cow else plain,
        "timeout": TIMEOUT,
    }
    if name == "threads":
        values["threads"] = 3
    if cow:
        options = {**COW, **_files(directory)}
        options |= {"cow-max-growth": limit, "cow-budget": budget}
        values |= {key.replace("-", "_"): value for key, value in options.items()}
    else:
        values |= {"preload_app": True, "max_requests": RECYCLED}
        values["max_requests_jitter"] = RECYCLED // 3
    text = "".join(f"{key} = {value!r}\n" for key, value in values.items())
    (directory / "soak.conf.py").write_text(text)


def _files(directory: Path) -> dict[str, str]:
    return {
        "cow-warmup-file": str(directory / "warm"),
        "cow-event-log": str(directory / "events"),
    }


def start(
    name: str, directory: Path, *, cow: bool = True, plugins: Path | None = None
) -> Started:
    """Start a server; its log is in `directory`."""
    directory.mkdir(parents=True)
    mark = f"{os.getpid()}-{directory.name}"
    environ = {"SOAK_BEGUN": str(directory / BEGUN), MARK: mark}
    log = directory / "log"
    if name in GUNICORN:
        _configure(directory, name, cow)
        arguments = ["--config", str(directory / "soak.conf.py"), GUNICORN[name][2]]
        server = harness.gunicorn(arguments, PROGRAMS, log, environ)
    else:
        server = harness.uwsgi(
            _ini(directory, cow), PROGRAMS, log, environ, plugins=plugins
        )
    return Started(name, server, directory, cow, mark)


def _ini(directory: Path, cow: bool) -> dict[str, str]:
    # No thunder-lock: an idle worker that waits for it leaves late (docs/hosts.md).
    keys = {
        "module": "soaked:application",
        "need-app": "true",
        "processes": str(WORKERS + 2),
        "cheaper-algo": "manual",  # the FIFO alone starts and ends workers
        "cheaper": "2",
        "cheaper-initial": str(WORKERS),
        "threads": "3",
        "forkbomb-delay": "0",
        "master-fifo": str(directory / "fifo"),
    }
    if cow:
        return {**keys, **COW, **_files(directory)}
    return {**keys, "max-requests": str(RECYCLED)}


def build_plugin(directory: Path) -> Path:
    """The plugin for this environment's uWSGI."""
    command = [script("cowpreload"), "plugin", "build", "--output", str(directory)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return directory


def command(*arguments: str) -> list[str]:
    """A command of ours, as operators call it."""
    return [sys.executable, "-m", "cowpreload", *arguments]


def left(mark: str) -> list[int]:
    """Processes that still have a server's mark in their environment."""
    found = []
    sought = f"{MARK}={mark}\0".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if sought in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue  # another's, or gone
    return found
