"""Start a real server, know when it serves, end it and everything it started.

Takes a command line; gives pids, memory and the log. Waits for conditions with a
deadline, never for a time.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

Result = TypeVar("Result")


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(
    condition: Callable[[], Result], seconds: float, what: str = "condition"
) -> Result:
    """Give the first true result of `condition`.

    Raises:
        TimeoutError: it stayed false for `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def children(pid: int) -> list[int]:
    """The living children of `pid`, by number."""
    found = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found |= {int(each) for each in task.read_text().split()}
    return sorted(child for child in found if alive(child))


def script(name: str) -> str:
    """The path of a script installed beside this interpreter."""
    return str(Path(sys.executable).parent / name)


class Server:
    """One server process and its workers.

    Attributes:
        port: of 127.0.0.1.
        log_path: where stdout and stderr go.
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
        self._seen: set[int] = set()
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env={**os.environ, **(environ or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        """What the server has written so far."""
        return self.log_path.read_text(errors="replace")

    def workers(self) -> list[int]:
        """The pids of the master's living children."""
        found = children(self.pid)
        self._seen |= set(found)
        return found

    def get(self, path: str, timeout: float = 30.0) -> tuple[int, bytes]:
        """One request on a connection of its own: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _serves(self, path: str, status: int | None) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"ended with {self.process.returncode}:\n{self.log}")
        try:
            return status in (None, self.get(path, timeout=5)[0])
        except OSError:
            return False

    def wait_serving(
        self,
        path: str = "/",
        workers: int = 1,
        seconds: float = 60,
        status: int | None = 200,
    ) -> Server:
        """Return when `path` answers so (None: anything), and `workers` live."""
        wait_until(lambda: self._serves(path, status), seconds, f"serving {path}")
        wait_until(lambda: len(self.workers()) >= workers, seconds, "workers")
        return self

    def wait_log(self, text: str, seconds: float = 30) -> str:
        """Return the first log line that contains `text`."""

        def find() -> str | None:
            return next((line for line in self.log.splitlines() if text in line), None)

        try:
            return str(wait_until(find, seconds, f"log line {text!r}"))
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the log:\n{self.log}") from None

    def signal(self, number: int) -> None:
        """Send a signal to the master."""
        os.kill(self.pid, number)

    def wait_exit(self, seconds: float = 30) -> int:
        """The master's exit code, once it and its workers are gone."""
        code = self.process.wait(seconds)
        wait_until(
            lambda: not any(map(alive, self._seen)), seconds, "workers to be gone"
        )
        return code

    def _hold(self) -> None:
        """Stop a master that lives, and see all its workers.

        One that it forked while it was told to end may have missed the signal, and
        nobody knows of it: gunicorn's then lives until half its timeout is over.
        """
        if self.process.poll() is None:
            self.signal(signal.SIGSTOP)
            self.workers()

    def stop(self, seconds: float = 15) -> None:
        """End the master by SIGTERM, then whatever is left, by pid, by SIGKILL."""
        if self.process.poll() is None:
            self.workers()
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
            self._hold()
        for pid in [self.pid, *self._seen]:
            if alive(pid) and (pid == self.pid or not children(pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def kill(self) -> None:
        """End everything at once by SIGKILL, the master first: nothing is finalized."""
        self._hold()
        self.process.kill()
        self.process.wait()
        for pid in self._seen:
            if alive(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, self._seen)), 30, "workers to be gone")

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def gunicorn(
    arguments: Sequence[str],
    directory: Path,
    log_path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    python: str = sys.executable,
    prefix: Sequence[str] = (),
) -> Server:
    """gunicorn on a free port; the application is the last of `arguments`.

    Another interpreter's by `python`; started by `prefix`, which must exec it.
    """
    port = free_port()
    command = [*prefix, python, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}"]
    # gunicorn's control socket is one file in the home: give each server its own.
    environ = {"HOME": str(log_path.parent), **(environ or {})}
    return Server([*command, *arguments], port, directory, log_path, environ)


def uwsgi(
    ini: Mapping[str, str | Sequence[str]],
    directory: Path,
    log_path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    plugins: Path | None = None,
    binary: str | None = None,
    prefix: Sequence[str] = (),
) -> Server:
    """uWSGI on a free port, with an ini of these keys; our plugin out of `plugins`.

    Started by `prefix`, which must exec it.
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
    lines = ["[uwsgi]"]
    for key, value in {**keys, **ini}.items():
        values = [value] if isinstance(value, str) else value
        lines += [f"{key} = {each}" for each in values]
    path = log_path.with_suffix(".ini")
    path.write_text("\n".join(lines) + "\n")
    command = [*prefix, binary or script("uwsgi"), str(path)]
    return Server(command, port, directory, log_path, environ)
