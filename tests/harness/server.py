"""One real server of a test: start it, ask it, signal it, end all of it.

Takes a command line; gives answers, pids and the log.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from harness.processes import alive, children, descendants, script, wait_until

# Ports that the kernel gives to nobody who asks for any: a client's end, or another
# test's probe, took one between its probe here and the server's bind (once in three
# whole runs). Each process of pytest-xdist has a block of its own, and gives each once.
_BLOCK = 2_000
_FIRST = 12_000 + _BLOCK * int(os.environ.get("PYTEST_XDIST_WORKER", "gw9")[2:])
_NEXT = itertools.count(os.getpid())


def free_port() -> int:
    """A port of 127.0.0.1 that nobody holds, and no other test will be given."""
    while True:
        port = _FIRST + next(_NEXT) % _BLOCK
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


_SHOWN = 100_000  # characters of a log, at each of its ends


class Server:
    """A server's master and its workers.

    Attributes:
        port: of 127.0.0.1.
        log_path: the file of its stdout and stderr.
        process: the master.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        directory: Path,
        log_path: Path,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port
        self.log_path = log_path
        self._seen: set[int] = set()  # every process of it that anybody saw
        self._heirs: list[int] = []
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env=os.environ | dict(environ or {}),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for whoever started it, who ends it
                stdout=log,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        """All that was written so far."""
        return self.log_path.read_bytes().decode(errors="replace")

    @property
    def shown(self) -> str:
        """The log for people, its middle left out: a worker that logs without end wrote
        more than pytest can send to its own master, and the whole run ended."""
        text = self.log
        left_out = len(text) - 2 * _SHOWN
        if left_out <= 0:
            return text
        return f"{text[:_SHOWN]}\n... {left_out} characters ...\n{text[-_SHOWN:]}"

    def workers(self) -> list[int]:
        """The living children of the master."""
        found = children(self.pid)
        self._seen.update(found)
        return found

    def get(
        self, path: str, timeout: float = 30.0, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of one GET, on a connection of its own."""
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        ) as connection:
            connection.request("GET", path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()

    def _answers(self, path: str) -> bool:
        code = self.process.poll()
        if code is not None:
            raise RuntimeError(f"the server ended with {code}; its log:\n{self.shown}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get(path, timeout=5)[0] == 200
        return False

    def wait_serving(
        self, path: str = "/", workers: int = 1, seconds: float = 60
    ) -> Server:
        """Return when `path` gives 200 and there are `workers` of them."""
        wait_until(lambda: self._answers(path), seconds, f"200 for {path}")
        wait_until(lambda: len(self.workers()) >= workers, seconds, "workers")
        return self

    def wait_log(self, text: str, seconds: float = 30) -> str:
        """The first line of the log with `text` in it."""

        def line() -> str | None:
            return next((each for each in self.log.splitlines() if text in each), None)

        try:
            return str(wait_until(line, seconds, f"{text!r} in the log"))
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the log:\n{self.shown}") from None

    def signal(self, number: int) -> None:
        """To the master."""
        os.kill(self.pid, number)

    def wait_exit(self, seconds: float = 30) -> int:
        """The master's exit code, once no worker is left either."""
        code = self.process.wait(seconds)
        wait_until(self._all_gone, seconds, "all workers gone")
        return code

    def _all_gone(self) -> bool:
        return not any(map(alive, self._seen))

    def adopt(self, pid: int) -> None:
        """Note another master, which takes over and is to be ended with this one."""
        self._heirs.append(pid)

    def kill(self) -> None:
        """SIGKILL to the master, and to all that it and its workers started."""
        masters = [self.pid] if self.process.poll() is None else []
        for pid in (*masters, *filter(alive, self._heirs)):
            os.kill(pid, signal.SIGSTOP)  # it forks no more
            self._seen.update([pid, *descendants(pid)])
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for pid in filter(alive, self._seen):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(self._all_gone, 30, "all workers gone")

    def stop(self, seconds: float = 15) -> None:
        """SIGTERM to the master, and what is left after `seconds` is killed."""
        if self.process.poll() is None:
            self.workers()
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        self.kill()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


def gunicorn(
    arguments: Sequence[str],
    directory: Path,
    log_path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    launcher: Sequence[str] = (),
) -> Server:
    """gunicorn on a port of its own; the last of `arguments` is the application.

    `launcher` is a command that ends by an exec of what follows it.
    """
    port = free_port()
    # Its control socket is a file in the home: servers side by side need one each.
    environ = {"HOME": str(log_path.parent)} | dict(environ or {})
    command = [*launcher, sys.executable, "-m", "gunicorn"]
    command += ["--bind", f"127.0.0.1:{port}"]
    return Server([*command, *arguments], port, directory, log_path, environ)


def uwsgi(
    ini: Mapping[str, str | Sequence[str]],
    directory: Path,
    log_path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    plugins: Path | None = None,
    binary: str | None = None,
    launcher: Sequence[str] = (),
) -> Server:
    """uWSGI, the tests' own or `binary`, on a port of its own, by an ini of these keys.

    Our plugin is loaded from `plugins`; a key may have several values. `launcher` is as
    gunicorn() has it.
    """
    port = free_port()
    keys: dict[str, str | Sequence[str]] = {
        "http-socket": f"127.0.0.1:{port}",
        "master": "true",
        "die-on-term": "true",
        "disable-logging": "true",
        "listen": "100",
    }
    if plugins is not None:
        keys |= {"plugins-dir": str(plugins), "need-plugin": "cow"}
    text = "[uwsgi]\n"
    for key, value in (keys | dict(ini)).items():
        for each in [value] if isinstance(value, str) else value:
            text += f"{key} = {each}\n"
    path = log_path.with_suffix(".ini")
    path.write_text(text)
    command = [*launcher, binary or script("uwsgi"), str(path)]
    return Server(command, port, directory, log_path, environ)
