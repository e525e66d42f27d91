"""Operators who look meanwhile: `cowpreload why` at random workers, `status`, and a
scraper of the exporter.

Takes the servers that run; gives how often each looked and what failed. A worker that
is gone when `why` comes to it is no failure of why's.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.processes import alive, wait_until

from soak.hosts import command

WHY_EVERY, STATUS_EVERY, SCRAPE_EVERY = 20.0, 10.0, 5.0  # seconds
GOES = 5.0
WHY_MOST = 240.0  # seconds of one report, on a machine with load 30


@dataclass
class Looked:
    """What came of one way to look.

    Attributes:
        gone: the worker ended before the report was made.
    """

    runs: int = 0
    gone: int = 0
    failures: list[str] = field(default_factory=list)


class Onlookers:
    """Those of all servers.

    Attributes:
        why: by server.
        status, scrapes: of all servers.
    """

    def __init__(
        self, seed: int, servers: Sequence[tuple[str, int, Callable[[], list[int]]]]
    ) -> None:
        """Args: servers: a name, the master's pid, and what gives its workers."""
        self._servers = servers
        self._chosen = random.Random(f"{seed} onlookers")
        self._over = threading.Event()
        self.why = {name: Looked() for name, _, _ in servers}
        self.status, self.scrapes = Looked(), Looked()
        self._exporter: subprocess.Popen[str] | None = None
        self._threads = [
            threading.Thread(target=each)
            for each in (self._ask_why, self._ask_status, self._scrape)
        ]

    def start(self) -> Onlookers:
        for each in self._threads:
            each.start()
        return self

    def end(self) -> None:
        """Wait for reports that are being made; end the exporter."""
        self._over.set()
        for each in self._threads:
            each.join()

    def _run(self, *arguments: str) -> tuple[int, str, str]:
        with subprocess.Popen(
            command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=WHY_MOST)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return -1, "", f"not within {WHY_MOST:g} s"
        return process.returncode, out, err.strip()

    def _ask_why(self) -> None:
        while not self._over.wait(WHY_EVERY * self._chosen.uniform(0.5, 1.5)):
            name, _, workers = self._chosen.choice(self._servers)
            pids = workers()
            if not pids:
                continue
            pid = self._chosen.choice(pids)
            looked = self.why[name]
            code, out, said = self._run("why", str(pid), "--json")
            looked.runs += 1
            if code == 0 and _is_json(out):
                continue
            if _goes(pid, workers):
                looked.gone += 1
            else:
                last = said.splitlines()[-1:] or ["no JSON"]
                looked.failures.append(f"why {pid}: exit {code}: {last[0]}")

    def _ask_status(self) -> None:
        masters = {pid for _, pid, _ in self._servers}
        while not self._over.wait(STATUS_EVERY):
            code, out, said = self._run("status", "--json")
            self.status.runs += 1
            if code in (0, 1) and _is_json(out):
                shown = {each["master"]["pid"] for each in json.loads(out)["servers"]}
                # A reload of uWSGI's has no board for a moment.
                if len(masters - shown) <= 1:
                    continue
                said = f"masters {masters - shown} are not shown"
            self.status.failures.append(f"status: exit {code}: {said[-300:]}")

    def _scrape(self) -> None:
        with subprocess.Popen(
            command("exporter", "--listen", "127.0.0.1:0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as exporter:
            self._exporter = exporter
            assert exporter.stdout is not None
            found = re.search(r"http://\S+", exporter.stdout.readline())
            while found and not self._over.wait(SCRAPE_EVERY):
                self._scrape_once(found[0])
            exporter.send_signal(signal.SIGTERM)
        if not found or exporter.returncode:
            self.scrapes.failures.append(f"exporter: exit {exporter.returncode}")

    def _scrape_once(self, address: str) -> None:
        self.scrapes.runs += 1
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                text = answer.read().decode()
        except OSError as error:
            self.scrapes.failures.append(f"scrape: {error}")
            return
        shown = text.count("\ncowpreload_server_info{")
        if shown < len(self._servers) - 1:
            self.scrapes.failures.append(f"scrape: {shown} servers")


def _goes(pid: int, workers: Callable[[], list[int]]) -> bool:
    """Whether a worker is gone, or is just going: its memory goes before its pid."""
    with contextlib.suppress(TimeoutError):
        return wait_until(lambda: not alive(pid) or pid not in workers(), GOES, "end")
    return False


def _is_json(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(text), dict)
    return False
