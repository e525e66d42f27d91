"""One server's soak, from its first request to its last process.

Takes a server that was started and a plan; gives a HostResult. One thread does the
acts, reads the log and takes the samples; the clients have their own.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from harness.processes import wait_until

from soak import hosts, lost, mix
from soak.clients import Clients
from soak.deaths import Deaths
from soak.faults import Faults
from soak.hosts import Started
from soak.mix import Act
from soak.onlookers import Looked
from soak.result import HostResult
from soak.samples import Samples
from soak.slopes import Slope, slope

CLIENTS = 6
LOOK_EVERY = 2.0  # seconds
TURN = 0.05
SETTLE = 60.0  # seconds for those that leave or boot when the load ends
LEAVE = 90.0
# What no line of the log may have: of ours that failed unasked, of anybody's crash.
ODD = re.compile(r"serving on without|is not called again|Traceback|Segmentation|Abort")


class Soak:
    """The run of one server; `run` in a thread, then `finish`."""

    def __init__(
        self, started: Started, acts: Sequence[Act], paths: list[str], seconds: float
    ) -> None:
        self.started, self._seconds = started, seconds
        server = started.server
        self.samples = Samples(server, started.cow)
        self._deaths = Deaths()
        kept = CLIENTS // 2 if started.name in hosts.KEEP else 0
        self._clients = Clients(server.port, paths, seconds, CLIENTS, kept)
        self._faults = Faults(
            started, self.samples, self._clients, self._deaths, self._at
        )
        self._turns = itertools.count()
        self._todo: list[tuple[float, int, Callable[[], object]]] = []
        self._acts = acts
        self._read = 0
        self._quiet = 0
        self._odd: list[str] = []
        self._begin = self._end = time.monotonic()

    def _at(self, at: float, do: Callable[[], object]) -> None:
        heapq.heappush(self._todo, (at, next(self._turns), do))

    def run(self, over: threading.Event) -> None:
        """Until the time is over, or somebody says so."""
        self._begin = time.monotonic()
        for act in self._acts:
            self._at(self._begin + act.at, lambda act=act: self._faults.do(act))  # type: ignore[misc]
        self._clients.start()
        looked = 0.0
        while not self._clients.over and not over.wait(TURN):
            now = time.monotonic()
            while self._todo and self._todo[0][0] <= now:
                heapq.heappop(self._todo)[2]()
            self._read_log()
            if now - looked >= LOOK_EVERY:
                self.samples.look()
                looked = now
            if self.started.server.process.poll() is not None:
                self._odd.append("the master has ended by itself")
                break
        self._end = time.monotonic()
        self._faults.end()
        self._clients.stop()

    def _read_log(self) -> None:
        with self.started.server.log_path.open("rb") as log:
            log.seek(self._read)
            data = log.read()
        whole = data.rpartition(b"\n")[0]
        self._read += len(whole) + bool(whole)
        now = time.monotonic()
        for line in whole.decode(errors="replace").splitlines():
            self._deaths.read(line, now)
            if ODD.search(line):
                self._odd.append(line.strip())
            if " recycled " in line and now - self._begin > self._quiet_from:
                self._quiet += 1

    @property
    def _quiet_from(self) -> float:
        return mix.faults_end(self._seconds)

    def finish(self, why: Looked) -> HostResult:
        """End the server; what became of everything."""
        tickets, not_ready = self._settle()
        code = self._stop()
        left = self._left()
        self._read_log()
        seconds = self._end - self._begin
        events = self._events()
        explained, unexplained = self._explain()
        return HostResult(
            host=self.started.name,
            cow=self.started.cow,
            seconds=round(seconds, 1),
            quiet_seconds=round(max(0.0, seconds - self._quiet_from), 1),
            right=self._clients.report.right,
            kept=self._clients.report.on_kept,
            explained=explained,
            unexplained=tuple(unexplained),
            recycled=events["recycled"],
            killed=events["killed"],
            unheeded=sum(events["unheeded"].values()),
            quiet_recycled=self._quiet,
            acts=dict(self._faults.done),
            deaths=self._deaths.causes,
            unexpected=tuple(self._deaths.unexpected),
            answered=self._faults.answered,
            generations=len(self.samples.generations),
            boards=len({made for made, _ in self.samples.freezes}),
            freezes=len(self.samples.freezes),
            slopes=self._slopes(),
            zombies=len(self.samples.zombies),
            left=left,
            tickets=self.samples.tickets,
            tickets_left=tickets,
            not_ready=not_ready,
            why={"runs": why.runs, "gone": why.gone, "failures": list(why.failures)},
            odd=tuple(self._odd),
            exit_code=code,
        )

    def _settle(self) -> tuple[int, int]:
        """Tickets that workers keep, and workers that are not ready, after the load."""
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: self.samples.unsettled() == (0, 0), SETTLE)
        return self.samples.unsettled()

    def _stop(self) -> int | None:
        server = self.started.server
        if server.process.poll() is None:
            server.workers()  # which wait_exit waits for
            server.signal(signal.SIGTERM)
        try:
            return server.wait_exit(LEAVE)
        except (subprocess.TimeoutExpired, TimeoutError):
            return server.process.poll()

    def _left(self) -> int:
        """Processes that outlive their master; ended here."""
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not hosts.left(self.started.mark), 15)
        left = hosts.left(self.started.mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.started.server.kill()
        return len(left)

    def _events(self) -> dict[str, dict[str, int]]:
        counts: dict[str, Counter[str]] = {
            "recycled": Counter(), "killed": Counter(), "unheeded": Counter()
        }  # fmt: skip
        path = self.started.directory / "events"
        for line in path.read_text().splitlines() if path.exists() else []:
            event: dict[str, Any] = json.loads(line)
            if event["event"] == "recycling":
                counts[event["action"]][event["reason"]] += 1
        return {name: dict(each) for name, each in counts.items()}

    def _explain(self) -> tuple[dict[str, int], list[str]]:
        begun, deaths = lost.read_begun(self.started.begun()), self._deaths
        causes: Counter[str] = Counter()
        unexplained = [f"wrong: {each}" for each in self._clients.wrong]
        for each in self._clients.lost:
            cause = lost.explain(each, deaths.known, deaths.stops, begun)
            if cause is None:
                at = self._wall(each.loss.ended)
                by = begun.get(each.number, "nobody")
                unexplained.append(f"{each}; begun by {by}; lost at {at}")
            else:
                causes[cause] += 1
        return dict(causes), unexplained

    @staticmethod
    def _wall(at: float) -> str:
        """As the server's log writes it."""
        ago = time.monotonic() - at
        return time.strftime("%H:%M:%S", time.localtime(time.time() - ago))

    def _slopes(self) -> dict[str, Slope | None]:
        return {
            "descriptors": slope(self.samples.descriptors),
            "master private": slope(self.samples.private),
            "master PSS": slope(self.samples.pss),
            "master resident": slope(self.samples.resident),
            "fresh worker": slope(self.samples.fresh),
        }
