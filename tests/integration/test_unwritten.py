"""What a worker wrote and did not close is in the files when it has left."""

from __future__ import annotations

import dbm.dumb
import gzip
import os
import shelve
import signal
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import QUICK, Servers, deep, ready, run
from harness.processes import alive, wait_until
from harness.server import Server

HOSTS = ["sync", "threaded", "asgi", "uwsgi", "uwsgi-threaded"]
KINDS = ["text", "binary", "random", "stdio", "gz", "over", "zip", "member", "shelf"]


def written(name: Path) -> dict[str, str]:
    """What came out of each kind of buffer of one worker."""

    def zipped(member: str) -> str:
        return zipfile.ZipFile(f"{name}.zip").read(member).decode()

    def shelved() -> str:
        with shelve.Shelf(dbm.dumb.open(f"{name}.shelf")) as shelf:
            return str(shelf["lines"][0])

    def plain(kind: str) -> str:
        return Path(f"{name}.{kind}").read_text()

    ways = {kind: lambda kind=kind: plain(kind) for kind in KINDS[:4]}
    ways["gz"] = lambda: gzip.open(f"{name}.gz", "rt").read()
    ways["over"] = lambda: gzip.open(f"{name}.over", "rt").read()
    ways["zip"] = lambda: zipped("line")
    ways["member"] = lambda: zipped("member")
    ways["shelf"] = shelved
    found = {}
    for kind, way in ways.items():
        try:
            found[kind] = way()
        except (OSError, EOFError, KeyError, IndexError, zipfile.BadZipFile) as error:
            found[kind] = repr(error)
    return found


ALL = dict.fromkeys(KINDS, "line\n")


def kept_at_an_ordinary_end(tmp_path: Path) -> set[str]:
    """The kinds that Python writes at its end, without us.

    The collector may end a file before what writes to it; zip archives on 3.10 and now
    and then on 3.12, a GzipFile over a file always, a text one on 3.14 alone.
    """
    kinds = set(KINDS) - {"over", "zip", "member"}
    path = str(tmp_path / "control.gz")
    code = (
        "import gzip, sys\n"
        "kept = [gzip.open(sys.argv[1], 'wt')]\n"
        "kept[0].write('line')\n"
        "kept.append(kept)"  # the collector's, as nearly all that a module holds
    )
    run("-c", code, path, check=True)
    try:
        gzip.open(path).read()
    except EOFError:
        kinds.remove("gz")
    return kinds


def gone(pid: int) -> None:
    wait_until(lambda: not alive(pid), 20, "worker to be gone")


def _recycle(server: Server, pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def _reload(server: Server, pid: int) -> None:
    server.signal(signal.SIGHUP)


def _stop(server: Server, pid: int) -> None:
    server.signal(signal.SIGTERM)


@pytest.fixture
def directory(shared: Servers, request: pytest.FixtureRequest) -> Path:
    """Where the workers of the shared server of this host write."""
    return shared.directory / request.node.callspec.params["shared_server"]


@pytest.fixture(scope="module")
def shared_server(request: pytest.FixtureRequest, shared: Servers) -> Iterator[Server]:
    """A host with one worker at a time; what they write is beside its log."""
    directory = shared.directory / request.param
    directory.mkdir()
    environ = {"UNWRITTEN": str(directory)}
    with shared.on(
        request.param, QUICK, workers=1, environ=environ, app="unwritten"
    ) as server:
        yield server


on_both = pytest.mark.parametrize("shared_server", ["sync", "uwsgi"], indirect=True)
# Every way on the first of each host; one on the others, which end alike.
CASES = [("sync", "stop"), ("uwsgi", "stop"), ("asgi", "stop")]
CASES += deep(("threaded", "told"), ("uwsgi-threaded", "told"))
WAYS = {"told": _recycle, "reload": _reload, "stop": _stop}


def lost_nothing(server: Server, directory: Path, way: str) -> None:
    pid = int(ready(server).get("/write")[1])
    WAYS[way](server, pid)
    gone(pid)
    assert written(directory / str(pid)) == ALL
    assert f"worker {pid}\n" in (directory / "preloaded").read_text()
    # As finalization does: its own temporary file goes, not the one of all workers.
    assert not list(directory.glob("young-*"))
    if way != "stop":
        assert list(directory.glob("preloaded-*"))
        ready(server)


@pytest.mark.parametrize("way", ["told", "reload"])
@on_both
def test_what_a_worker_wrote_and_did_not_close_is_not_lost(
    shared_server: Server, directory: Path, way: str
) -> None:
    lost_nothing(shared_server, directory, way)


@pytest.mark.parametrize(("host", "way"), CASES)
def test_what_is_not_closed_is_not_lost_on_other_hosts_or_at_a_stop(
    servers: Servers, host: str, way: str, tmp_path: Path
) -> None:
    environ = {"UNWRITTEN": str(tmp_path)}
    server = servers.on(host, QUICK, workers=1, environ=environ, app="unwritten")
    lost_nothing(server, tmp_path, way)


@on_both
def test_what_was_open_when_a_worker_settled_is_not_lost(
    shared_server: Server, directory: Path
) -> None:
    """The collector no longer lists it."""
    server = ready(shared_server)
    pid = int(server.get("/write?settle=yes")[1])
    assert server.get("/write?settle=yes&tag=more") == (200, str(pid).encode())
    _recycle(server, pid)
    gone(pid)
    for tag in ("", "more"):
        assert written(directory / f"{pid}{tag}") == ALL
    assert not list(directory.glob("young-*"))
    assert list(directory.glob("preloaded-*"))


@pytest.mark.parametrize("path", ["/full", "/stall?what=nonblocking"])
@on_both
def test_what_cannot_be_written_keeps_nothing_else_from_being_written(
    shared_server: Server, directory: Path, path: str
) -> None:
    """A full disk, a closed descriptor, a close() that raises, a full pipe."""
    server = ready(shared_server)
    pid = int(server.get(path)[1])
    os.kill(pid, signal.SIGTERM)
    gone(pid)
    assert written(directory / str(pid)) == ALL
    assert "left with" not in server.log


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_worker_that_settled_ends_as_the_host_does_if_it_is_to(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    """A whole finalization finds what was settled."""
    environ = {"UNWRITTEN": str(tmp_path)}
    options = {**QUICK, "cow-exit": "normal"}
    server = servers.on(host, options, workers=1, environ=environ, app="unwritten")
    pid = int(ready(server).get("/write?settle=yes")[1])
    server.signal(signal.SIGHUP)
    gone(pid)
    found = written(tmp_path / str(pid))
    for kind in kept_at_an_ordinary_end(tmp_path):
        assert found[kind] == "line\n", kind
    assert ready(server).get("/")[0] == 200


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_worker_of_a_heap_that_is_not_frozen_removes_no_file_of_the_masters(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    environ = {"UNWRITTEN": str(tmp_path)}
    options = {**QUICK, "cow-freeze": "off"}
    server = servers.on(host, options, workers=1, environ=environ, app="unwritten")
    pid = int(ready(server).get("/write")[1])
    # 3.12 and 3.13 keep some hundred immortal ones there by themselves.
    assert int(server.get("/frozen")[1]) < 5000
    _recycle(server, pid)
    gone(pid)
    assert written(tmp_path / str(pid)) == ALL
    assert not list(tmp_path.glob("young-*"))
    assert list(tmp_path.glob("preloaded-*"))


@pytest.mark.parametrize("host", ["gunicorn", "uwsgi"])
def test_the_control_without_us_writes_as_much(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    environ = {"UNWRITTEN": str(tmp_path)}
    if host == "gunicorn":
        server = servers.gunicorn("--preload", app="unwritten", environ=environ)
    else:
        ini = {"processes": "1"}
        server = servers.uwsgi(ini, app="unwritten", environ=environ, plugin=False)
    pid = int(server.wait_serving().get("/write")[1])
    # uWSGI's worker does not finalize when it is told to stop and was just busy.
    server.signal(signal.SIGHUP)
    gone(pid)
    found = written(tmp_path / str(pid))
    for kind in kept_at_an_ordinary_end(tmp_path):
        assert found[kind] == "line\n", kind
    (second,) = server.wait_serving().workers()
    server.signal(signal.SIGHUP)
    gone(second)
    # What the master had buffered is written by each process.
    assert (tmp_path / "preloaded").read_text().count("master") >= 2


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_what_the_master_had_buffered_is_written_once(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    environ = {"UNWRITTEN": str(tmp_path)}
    server = servers.on(host, QUICK, workers=2, environ=environ, app="unwritten")
    ready(server, 2)
    assert (tmp_path / "preloaded").read_text() == "master\n"
    server.signal(signal.SIGTERM)
    server.wait_exit()
    assert (tmp_path / "preloaded").read_text() == "master\n"


def test_each_interpreter_of_uwsgi_writes_its_own(
    servers: Servers, tmp_path: Path
) -> None:
    """On 3.10 imports failed there once the seal had numbered the types anew."""
    ini = {
        "processes": "1",
        "mount": ["/one=unwritten:application", "/two=unwritten:application"],
        "manage-script-name": "true",
    }
    environ = {"UNWRITTEN": str(tmp_path)}
    server = servers.uwsgi(ini, app=None, environ=environ).wait_serving("/one/")
    pid = int(server.get("/one/write?tag=one")[1])
    assert int(server.get("/two/write?tag=two&settle=yes")[1]) == pid
    server.signal(signal.SIGTERM)
    server.wait_exit()
    for tag in ("one", "two"):
        assert written(tmp_path / f"{pid}{tag}") == ALL


@pytest.mark.parametrize(("host", "what"), [("sync", "stdio-lock"), ("uwsgi", "lock")])
def test_a_file_that_nobody_reads_does_not_hold_the_exit_up(
    servers: Servers, host: str, what: str, tmp_path: Path
) -> None:
    """For ever, it would; and what goes to files is written before."""
    environ = {"UNWRITTEN": str(tmp_path)}
    server = servers.on(host, QUICK, workers=1, environ=environ, app="unwritten")
    pid = int(ready(server).get(f"/stall?what={what}")[1])
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    gone(pid)
    assert time.monotonic() - began > 4, "nothing was in the way"
    assert written(tmp_path / str(pid)) == ALL
    server.wait_log(f"cow: pid={pid} left with unwritten buffers")
    wait_until(lambda: server.workers() not in ([], [pid]), 20, "the next worker")
    assert "SIGKILL" not in server.log
    assert server.get("/")[0] == 200
