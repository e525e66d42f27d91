"""`cowpreload why` on real servers: the worker serves on, and the report is whole."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import QUICK, SITE, Servers, deep, ready, run
from harness.load import Load
from harness.processes import alive, wait_until
from harness.server import Server
from harness.shop import WARMUP, mix

from cowpreload import _offsets
from cowpreload._core import lib, take_reading
from cowpreload.board import open_board
from cowpreload.causes import Cause, How, Sharing
from cowpreload.errors import WhyError
from cowpreload.why.examine import examine

HOSTS = ["sync", "threaded", "uwsgi"]

pytestmark = pytest.mark.skipif(_offsets.own() is None, reason=_offsets.why_not())


@pytest.fixture(scope="module")
def shared_server(request: pytest.FixtureRequest, shared: Servers) -> Iterator[Server]:
    """A host with one worker at a time."""
    with shared.on(request.param, workers=1) as server:
        yield server


on_sync = pytest.mark.parametrize("shared_server", ["sync"], indirect=True)


def only_worker(server: Server) -> int:
    """The one that serves now; the one before it may have been killed just now."""
    board = open_board(ready(server).pid)

    def workers() -> list[int]:
        there = server.workers()
        serving = [each.pid for each in board if each.state == "ready"]
        return there if there == serving else []

    (worker,) = wait_until(workers, 20, "a worker")
    return worker


def why(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "cowpreload", "why", *arguments)


def copies(pid: int) -> list[int]:
    """Still copies of a worker, zombies too."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(each) for each in path.read_text().split()]
    return found


def check_whole(found: Sharing) -> None:
    assert found.how is How.STILL, found.notes
    assert 0 < found.pause < 5
    assert found.frozen
    assert found.pages == sum(row.pages for row in found.rows) > 0
    # The worker runs on between the page map and smaps_rollup.
    assert abs(found.private - found.kernel_private) <= 64 * found.page_size


@pytest.mark.each_python
@pytest.mark.parametrize(
    "host",
    ["sync", "uwsgi", *deep("threaded", "gevent", "uvicorn")],
)
def test_a_worker_serves_on_while_its_copy_is_read(servers: Servers, host: str) -> None:
    """No answer is lost, the copy is gone afterwards, and can be made again."""
    server = ready(servers.on(host, environ={"HEAP_MB": "10"}), workers=2)
    load = Load(server.port, ["/sum?n=20000"], concurrency=2).start()
    worker = server.workers()[0]
    try:
        for _ in range(2):
            check_whole(examine(worker))
            wait_until(lambda: not copies(worker), 10, "the copy to be gone")
    finally:
        report = load.stop()
    assert (report.wrong, report.failed) == (0, 0), report.errors
    assert report.right > 0
    assert alive(worker)


@pytest.mark.parametrize(
    "shared_server", ["sync", "uwsgi", *deep("threaded")], indirect=True
)
def test_a_worker_that_hangs_takes_part(shared_server: Server) -> None:
    """The copy needs the watching thread alone, not Python."""
    server = shared_server
    worker = only_worker(server)

    def ask() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            server.get("/hang?s=60&mb=8", 90)

    hang = threading.Thread(target=ask)
    hang.start()
    grown = 6 << 20
    wait_until(lambda: take_reading(worker).private > grown, 20, "the request")
    found = examine(worker)
    os.kill(worker, signal.SIGKILL)
    hang.join()
    check_whole(found)
    assert found.row(Cause.NEW).pages * found.page_size > grown


@on_sync
def test_a_stopped_worker_is_read_live(shared_server: Server) -> None:
    """It cannot answer; the report says so, and is whole all the same."""
    worker = only_worker(shared_server)
    os.kill(worker, signal.SIGSTOP)
    try:
        found = examine(worker)
    finally:
        os.kill(worker, signal.SIGCONT)
    assert found.how is How.LIVE
    assert "did not answer" in found.notes[0]
    assert abs(found.private - found.kernel_private) <= 64 * found.page_size
    # It does not act on the request that was withdrawn.
    wait_until(
        lambda: open_board(worker).raw.slot[0].still.state == 0, 5, "an idle slot"
    )
    assert not copies(worker)
    check_whole(examine(worker))


@pytest.mark.parametrize("live", [True, False])
@on_sync
def test_a_worker_that_ends_meanwhile_gives_no_report(
    shared_server: Server, live: bool
) -> None:
    worker = only_worker(shared_server)

    def end(text: str) -> None:
        if text.startswith("looking for"):
            copy = [] if live else copies(worker)
            os.kill(worker, signal.SIGKILL)
            wait_until(lambda: not any(map(alive, [worker, *copy])), 10, "their end")

    with pytest.raises(WhyError, match=f"pid={worker}: ended while it was read"):
        examine(worker, live=live, progress=end)


@on_sync
def test_a_copy_ends_with_its_worker(shared_server: Server) -> None:
    from cowpreload.why.still import Still

    worker = only_worker(shared_server)
    with Still(open_board(worker, writable=True), 1, lambda: None) as still:
        assert still.pid
        assert alive(still.pid)
        assert Path(f"/proc/{still.pid}/comm").read_text() == "cow-still\n"
        assert not list(Path(f"/proc/{still.pid}/fd").iterdir())
        with Still(open_board(worker, writable=True), 1, lambda: None) as second:
            assert "another report" in second.why_not
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not alive(still.pid), 10, "the copy to end")


@on_sync
def test_a_report_that_is_interrupted_leaves_the_slot_to_the_next(
    shared_server: Server,
) -> None:
    """While it reads the page map; and one that never saw its copy fail."""
    from cowpreload.why.still import Still

    def interrupted() -> None:
        raise KeyboardInterrupt

    worker = only_worker(shared_server)
    board = open_board(worker, writable=True)
    with pytest.raises(KeyboardInterrupt), Still(board, 1, interrupted):
        pass
    assert board.raw.slot[0].still.state == lib.COW_STILL_NONE
    board.raw.slot[0].still.state = lib.COW_STILL_FAILED
    with Still(board, 1, lambda: None) as still:
        assert still.pid, still.why_not
    check_whole(examine(worker))


def test_a_killed_report_suspends_no_limit(servers: Servers) -> None:
    """Its copy lived on for two minutes, in which no soft limit acted."""
    limit = {**QUICK, "cow-max-growth": "20M"}
    server = ready(servers.on("sync", limit, workers=1), workers=1)
    worker = server.workers()[0]
    program = (
        "import sys, time\n"
        "from cowpreload.board import open_board\n"
        "from cowpreload.why.still import Still\n"
        f"board = open_board({worker}, writable=True)\n"
        "with Still(board, 1, lambda: None) as still:\n"
        "    print(still.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as report:
        assert report.stdout
        copy = int(report.stdout.readline())
        lived = time.monotonic() + lib.COW_STILL_ALONE_MS / 1000 + 0.5
        wait_until(lambda: time.monotonic() > lived or not alive(copy), 60, "a while")
        assert alive(copy)  # for as long as its report lives
        assert server.get("/grow?mb=30")[0] == 200
        report.kill()
    wait_until(lambda: not alive(copy), 30, "the copy to end")
    wait_until(lambda: server.workers() not in ([worker], []), 30, "a new worker")
    assert " growth-limit=" in server.log


@on_sync
def test_a_copy_that_is_not_released_is_forgotten_by_a_new_worker(
    shared_server: Server,
) -> None:
    """A report that was killed leaves the slot as it is; its next worker is free."""
    worker = only_worker(shared_server)
    board = open_board(worker, writable=True)
    board.raw.slot[0].still.state = 1
    wait_until(
        lambda: board.raw.slot[0].still.state == 0, 10, "the request to be forgotten"
    )
    board.raw.slot[0].still.state = 4
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not alive(worker), 20, "its end")
    check_whole(examine(only_worker(shared_server)))


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_the_applications_own_wait_does_not_see_the_copy(
    servers: Servers, host: str
) -> None:
    from cowpreload.why.still import Still

    server = ready(servers.on(host, workers=1, app="forking"), workers=1)
    worker = server.workers()[0]
    with Still(open_board(worker, writable=True), 1, lambda: None) as still:
        assert still.pid in copies(worker)
        assert server.get("/wait")[1] == b"no children"


@on_sync
def test_a_master_and_a_stranger_are_refused(shared_server: Server) -> None:
    with pytest.raises(WhyError, match="is the master"):
        examine(ready(shared_server).pid)
    with pytest.raises(WhyError, match="no such process"):
        examine(2**22 - 1)
    done = why(str(2**22 - 1))
    assert done.returncode == 1
    assert done.stderr.startswith("cowpreload: pid=4194303: ")


def test_another_program_gets_what_page_maps_say() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(b"x")
            process.stdout.read(1)  # it has started
            found = examine(process.pid)
        finally:
            process.kill()
    assert found.how is How.MAPS
    assert found.private == found.kernel_private > 0
    assert len(found.notes) == 2
    assert "runs another Python" in found.notes[1]


def test_gunicorn_without_us_can_be_examined(servers: Servers) -> None:
    """Before and after: the report does not need our worker class."""
    server = servers.gunicorn("--preload", "--workers", "1").wait_serving()
    found = examine(server.workers()[0])
    assert found.how is How.LIVE
    assert not found.frozen
    assert found.share(Cause.UNEXPLAINED) < 0.05


def test_the_command_prints_a_table_json_and_a_picture(
    servers: Servers, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    server = ready(servers.on("sync"), workers=2)
    picture = tmp_path / "why.png"
    done = why(f"{server.pid}:2", "--png", str(picture))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"Worker {open_board(server.pid).view(2).pid} of master")
    assert picture.read_bytes().startswith(b"\x89PNG")
    done = why(str(server.workers()[0]), "--json", "--live")
    figures = json.loads(done.stdout)
    assert figures["how"] == "live"
    assert figures["pid"] == server.workers()[0]
    assert sum(each["bytes"] for each in figures["rows"]) == figures["private"]


def serve_site(server: Server, requests: int) -> None:
    server.wait_serving(workers=2)
    load = Load(server.port, mix(server, requests), requests=requests)
    report = load.start().finish()
    assert (report.wrong, report.failed) == (0, 0), report.errors


@pytest.mark.parametrize(
    ("host", "catalogue"),
    [("gunicorn", "20")]
    + [
        pytest.param(host, "145", marks=pytest.mark.deep)
        for host in ("gunicorn", "uwsgi")
    ],
)
def test_the_example_site_is_explained(
    servers: Servers, host: str, catalogue: str
) -> None:
    """Less than a twentieth of its private memory stays unexplained."""
    environ = {"SHOP_CATALOGUE_MB": catalogue, "SHOP_NELSON": "0"}
    environ["SHOP_DB"] = str(servers.database())
    if host == "uwsgi":
        ini = {"processes": "2", "cow-warmup": WARMUP}
        server = servers.uwsgi(ini, app="shop.wsgi", directory=SITE, environ=environ)
    else:
        flags = ["--config", "gunicorn.conf.py", "--workers", "2"]
        server = servers.gunicorn(
            *flags, app="shop.wsgi", directory=SITE, environ=environ
        )
    serve_site(server, 80)
    found = examine(server.workers()[0])
    check_whole(found)
    assert found.share(Cause.UNEXPLAINED) < 0.05
    # The warm up reached most of what runs: there is nothing to advise for it.
    cold, warm = (
        found.row(each).names for each in (Cause.SPECIALIZATION, Cause.COUNTERS)
    )
    assert cold + warm > 100
    assert warm > 50
