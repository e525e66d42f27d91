"""What a server stands on gives way: its disk is full or read-only, its descriptors are
closed, its resources are limited while it runs."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.processes import wait_until
from harness.server import Server
from harness.under_load import LEAKING
from integration.test_no_proc import needs_unshare

from cowpreload.board import open_board

BOTH = full("sync", "uwsgi")


def mounted(command: str) -> list[str]:
    """A launcher in a mount namespace of its own."""
    return ["unshare", "--mount", "sh", "-c", f'{command} && exec "$@"', "sh"]


@needs_unshare
@pytest.mark.parametrize("host", ["uwsgi", *full("sync")])
def test_a_full_disk_holds_up_nothing_and_is_written_to_again(
    servers: Servers, faults: Faults, tmp_path: Path, host: str
) -> None:
    """Event log, warm-up file and temporary files on a file system of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = {**QUICK, **LEAKING, "cow-warmup": "auto"}
    options["cow-event-log"] = str(disk / "events")
    options["cow-warmup-file"] = str(disk / "pages")
    launcher = mounted(f"mount -t tmpfs -o size=1M none {disk}")
    server = servers.on(
        host, options, workers=4, environ={"TMPDIR": str(disk)}, launcher=launcher
    ).wait_serving(workers=4)
    inside = Path(f"/proc/{server.pid}/root{disk}")
    with faults.under_load("a full disk", server, host, workers=4) as under:
        under.settle_in()
        filler = inside / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        under.recycle(8)
        full_at = (inside / "events").stat().st_size
        filler.unlink()
        wait_until(
            lambda: (inside / "events").stat().st_size > full_at, 60, "events again"
        )


@needs_unshare
@pytest.mark.parametrize("host", BOTH)
def test_a_read_only_file_system_is_enough(
    servers: Servers, faults: Faults, host: str
) -> None:
    options = {**QUICK, **LEAKING}
    if host == "sync":
        options["worker-tmp-dir"] = "/dev/shm"
    launcher = mounted("mount -o remount,bind,ro /")
    server = servers.on(host, options, workers=4, launcher=launcher)
    server.wait_serving(workers=4)
    with faults.under_load("read-only", server, host, workers=4) as under:
        under.settle_in()


@pytest.mark.parametrize("host", BOTH)
def test_a_server_started_without_descriptors_0_to_2_recycles(
    servers: Servers, faults: Faults, host: str
) -> None:
    """Whatever is opened first gets their numbers."""
    name = "error-logfile" if host == "sync" else "logto"
    log = servers.directory / "own.log"
    launcher = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"]
    options = {**QUICK, **LEAKING, name: str(log)}
    server = servers.on(host, options, workers=4, launcher=launcher)
    server.log_path = log
    server.wait_serving(workers=4)
    with faults.under_load("no descriptors 0 to 2", server, host, workers=4) as under:
        under.settle_in()


@pytest.mark.parametrize("host", ["sync", *full("uwsgi")])
def test_a_worker_that_closes_all_its_descriptors_costs_its_own_request(
    servers: Servers, faults: Faults, host: str
) -> None:
    server = servers.on(host, {**QUICK, **LEAKING}, workers=4)
    server.wait_serving(workers=4)
    with faults.under_load("closed descriptors", server, host, workers=4) as under:
        under.settle_in()
        # Not all of them: one of uWSGI's waits for nothing then, and for ever, without
        # us as well. With none left that serves, none is recycled.
        for _ in range(2):
            with contextlib.suppress(Exception):
                server.get("/close", timeout=5)
        under.recycle(8)


def in_use(pid: int) -> int:
    return max(int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()) + 1


def address_space(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


# What each process is given at most, from what it has.
LIMITS: dict[int, Callable[[int], int]] = {
    resource.RLIMIT_AS: lambda pid: address_space(pid) + (256 << 20),
    resource.RLIMIT_DATA: lambda pid: address_space(pid) + (256 << 20),
    resource.RLIMIT_STACK: lambda pid: 1 << 16,
    resource.RLIMIT_MEMLOCK: lambda pid: 0,
    resource.RLIMIT_FSIZE: lambda pid: 0,  # the log, too
    resource.RLIMIT_SIGPENDING: lambda pid: 0,
    resource.RLIMIT_MSGQUEUE: lambda pid: 0,
}


@contextlib.contextmanager
def limited(server: Server, kind: int) -> Iterator[None]:
    """Master and workers, and all that are forked meanwhile."""
    limit = LIMITS[kind](server.pid)
    before = resource.prlimit(server.pid, kind)
    for pid in [server.pid, *server.workers()]:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, kind, (limit, before[1]))
    try:
        yield
    finally:
        for pid in [server.pid, *server.workers()]:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, kind, before)


def _replaced(server: Server, workers: set[int]) -> bool:
    return workers.isdisjoint(server.workers())


@pytest.mark.parametrize("host", full("sync", "uwsgi", "threaded", "asgi"))
def test_limits_of_resources_that_come_while_it_runs_hold_up_nothing(
    servers: Servers, faults: Faults, host: str
) -> None:
    server = servers.on(host, {**QUICK, **LEAKING}, workers=4)
    server.wait_serving(workers=4)
    # Else an asgi worker meets its limit while it waits for its turn to leave.
    pause = 0.1 if host == "asgi" else 0.02
    with faults.under_load(
        "resource limits", server, host, workers=4, pause=pause
    ) as under:
        under.settle_in()
        for kind in LIMITS:
            before = set(server.workers())
            with limited(server, kind):
                wait_until(partial(_replaced, server, before), 60, "recyclings")
    assert "without limits" not in server.log


@pytest.mark.parametrize("host", BOTH)
def test_a_worker_without_a_free_descriptor_is_read_and_recycled(
    servers: Servers, faults: Faults, host: str
) -> None:
    """Each has one for its connection; /proc is read beside it then (prim.c)."""
    server = servers.on(host, {**QUICK, **LEAKING}, workers=4)
    server.wait_serving(workers=4)
    hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
    with faults.under_load("descriptors used up", server, host, workers=4) as under:
        under.settle_in()
        board = open_board(server.pid)
        end, first = time.monotonic() + 60, under.recyclings
        while under.recyclings < first + 12 and time.monotonic() < end:
            for pid in [each.pid for each in board if each.state == "ready"]:
                with contextlib.suppress(OSError):
                    limit = (in_use(pid) + 1, hard)
                    resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
            time.sleep(0.05)
        assert under.recyclings >= first + 12
