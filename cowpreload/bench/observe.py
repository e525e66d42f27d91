"""Look at running servers from outside: memory, faults, the moment of their end.

Takes pids; gives plain figures: bytes, seconds, counts of pages of 4 KiB. Reads /proc
only and sends nothing but the signal that ends a server.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cowpreload import _core
from cowpreload.bench.server import Server, alive, wait_until
from cowpreload.errors import NativeError

TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds
PAUSE = 0.02  # seconds between two looks at all memory while workers leave
QUIET = 0.3  # seconds without any work that count as rest


@dataclass(frozen=True)
class Stat:
    """Of /proc/PID/stat: minor faults and work in ticks, its own and reaped children's.

    The kernel knows the work to a nanosecond and shows it in whole ticks, of 10 ms.
    """

    faults: int
    children_faults: int
    ticks: int
    children_ticks: int


@dataclass(frozen=True)
class Worker:
    """One process at one moment; sizes in bytes."""

    pid: int
    private: int
    shared: int
    pss: int
    faults: int


@dataclass(frozen=True)
class Memory:
    """A server at one moment; `total_pss` with the master's."""

    workers: tuple[Worker, ...]
    total_pss: int


@dataclass(frozen=True)
class Exit:
    """All workers left at once.

    Attributes:
        seconds: from the signal until no worker is left.
        faults: minor faults of all workers meanwhile, nearly all of them copies.
        before: total PSS before the signal, in bytes.
        peak: the highest total PSS that was seen, in bytes.
    """

    seconds: float
    faults: int
    before: int
    peak: int


def stat(pid: int) -> Stat:
    """Read /proc/PID/stat; a zombie has one too. OSError if the process is gone."""
    text = Path(f"/proc/{pid}/stat").read_text()
    fields = text.rpartition(")")[2].split()  # from the third on: proc(5)
    utime, stime, cutime, cstime = map(int, fields[11:15])
    return Stat(int(fields[7]), int(fields[8]), utime + stime, cutime + cstime)


def cpu_seconds(server: Server) -> float:
    """Processor time of the master and all its workers so far, those that left too."""
    master = stat(server.pid)
    ticks = master.ticks + master.children_ticks
    for pid in server.workers():
        with contextlib.suppress(OSError):  # it may leave meanwhile
            worker = stat(pid)
            ticks += worker.ticks + worker.children_ticks
    return ticks * TICK


def look(server: Server) -> Memory:
    """Read every process of a server, the master last."""
    workers = []
    for pid in server.workers():
        with contextlib.suppress(NativeError, OSError):  # it may leave meanwhile
            reading = _core.take_reading(pid)
            faults = stat(pid).faults
            private = reading.private + reading.evictable  # whoever can take it
            workers.append(Worker(pid, private, reading.shared, reading.pss, faults))
    master = _core.take_reading(server.pid).pss
    return Memory(tuple(workers), master + sum(each.pss for each in workers))


def wait_forked(server: Server, workers: int, seconds: float = 300) -> list[float]:
    """Return when all workers are there; when each was first seen, perf_counter's s.

    No request is made: it would write to the memory that is to be read.
    """
    seen: dict[int, float] = {}
    deadline = time.monotonic() + seconds
    while len(seen) < workers:
        for pid in server.workers():
            seen.setdefault(pid, time.perf_counter())
        if server.process.poll() is not None:
            raise RuntimeError(f"the server ended; its log:\n{server.log}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(seen)} of {workers} workers:\n{server.log}")
        time.sleep(0.001)
    return sorted(seen.values())


def wait_quiet(server: Server, seconds: float = 300) -> None:
    """Return when neither the master nor a worker has worked for a moment."""
    last: list[Stat] = []
    since = time.monotonic()

    def quiet() -> bool:
        nonlocal last, since
        now = [stat(pid) for pid in (server.pid, *server.workers())]
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > QUIET

    wait_until(quiet, seconds, "the server to come to rest")


def _total(pids: Sequence[int]) -> int:
    total = 0
    for pid in pids:
        with contextlib.suppress(NativeError):
            total += _core.take_reading(pid).pss
    return total


def leave_all(server: Server, seconds: float = 300) -> Exit:
    """Send SIGTERM to the master and watch its workers leave.

    The kernel adds a reaped child's faults to its parent's figures, and they can be
    read until the parent itself is reaped: nothing is lost between two looks.
    """
    pids = server.workers()
    before = _total([server.pid, *pids])
    worked = sum(stat(pid).faults for pid in pids)
    reaped = stat(server.pid).children_faults
    peak, next_look = before, 0.0
    begin = time.perf_counter()
    server.signal(signal.SIGTERM)
    while any(map(alive, pids)):
        now = time.perf_counter()
        if now - begin > seconds:
            raise TimeoutError(f"workers did not leave:\n{server.log}")
        if now > next_look:
            peak = max(peak, _total([server.pid, *pids]))
            next_look = time.perf_counter() + PAUSE
        time.sleep(0.001)
    took = time.perf_counter() - begin
    wait_until(lambda: not alive(server.pid), seconds, "the master to end")
    faults = stat(server.pid).children_faults - reaped - worked
    return Exit(took, faults, before, peak)
