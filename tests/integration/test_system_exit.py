"""An application that ends its process itself, under uWSGI."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from conftest import Servers
from harness.processes import children, wait_until
from harness.server import Server
from test_lifecycle import notes

# Before 3.12 the code is not seen in passing, and nothing immortal forbids the end that
# Python has without us.
SEEN = sys.version_info >= (3, 12)
MULE = 7 if sys.version_info >= (3, 13) else 30
CODES = {"code": 7, "none": 0, "text": 1, "subclass": 8, "generator": 7, "now": 9}


@contextlib.contextmanager
def status_kept(server: Server):  # type: ignore[no-untyped-def]
    """A stopped master reaps nobody: what has ended shows its status until then."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def status(pid: int) -> int:
    """What a process that has ended would tell wait()."""
    wait_until(lambda: fields(pid)[0] == "Z", 20, f"{pid} to end")
    return int(fields(pid)[-1])


def catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for this signal."""
    text = Path(f"/proc/{pid}/status").read_text()
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)", text, re.MULTILINE)
    return bool(int(caught, 16) & 1 << number - 1)


def ended(server: Server, path: str) -> tuple[int, int]:
    """The worker, and its status, after the request that ended it."""
    worker = server.workers()[0]
    with status_kept(server):
        with contextlib.suppress(OSError):
            server.get(path, timeout=20)
        return worker, status(worker)


@pytest.mark.parametrize("plugin", [True, False], ids=["ours", "control"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_sys_exit_in_a_request_ends_the_worker_with_its_code(
    servers: Servers, threads: str, plugin: bool, tmp_path: Path
) -> None:
    """It ended in SIGSEGV: the exit handlers were run after Py_Finalize."""
    if threads == "3" and not (plugin and SEEN):
        pytest.skip("uWSGI alone hangs then; so does ours before 3.12")
    log = tmp_path / "exit"
    ini = {"processes": "1", "threads": threads, "forkbomb-delay": "0"}
    environ = {"EXIT_LOG": str(log)}
    server = servers.uwsgi(ini, app="exits", environ=environ, plugin=plugin)
    server.wait_serving()
    for how, code in CODES.items():
        worker, ended_with = ended(server, f"/{how}")
        assert ended_with == code << 8, how
        said = notes(log).get(worker, [])
        if how == "now":
            assert said == []
            continue
        end = [] if plugin and SEEN else ["finalized"]
        assert said in (["second", "first", *end], ["second", "first"])
        out = Path(f"{log}.out").read_text()
        assert f"{worker} {'code' if how == 'generator' else how}\n" in out
        server.wait_serving()
    assert "Segmentation" not in server.log


@pytest.mark.parametrize("plugin", [True, False], ids=["ours", "control"])
def test_sys_exit_in_one_of_several_interpreters_ends_the_worker_with_its_code(
    servers: Servers, plugin: bool, tmp_path: Path
) -> None:
    """From 3.13 on after the handlers of all; on 3.12 where the main one ends.

    Else the handlers of the one that ends are run, as without us, and Python aborts at
    the end of the main one, as without us.
    """
    log = tmp_path / "exit"
    ini = {
        "processes": "1",
        "forkbomb-delay": "0",
        "mount": ["/one=exits:application", "/two=exits:application"],
        "manage-script-name": "true",
    }
    environ = {"EXIT_LOG": str(log)}
    server = servers.uwsgi(ini, app=None, environ=environ, plugin=plugin)
    server.wait_serving("/one/")  # the first has the main interpreter
    handlers, end = ["second", "first"], [] if plugin and SEEN else ["finalized"]

    def of(interpreters: int) -> list[str]:
        if sys.version_info >= (3, 14):  # the handlers of all come first
            return handlers * interpreters + end * interpreters
        return (handlers + end) * interpreters

    both = sys.version_info >= (3, 13)
    sound = both or (plugin and SEEN)
    worker, ended_with = ended(server, "/one/code")
    assert ended_with == (7 << 8 if sound else signal.SIGABRT)
    assert notes(log)[worker] == of(2 if sound else 1)
    server.wait_serving("/one/")
    worker, ended_with = ended(server, "/two/code")
    assert ended_with == 7 << 8
    assert notes(log)[worker] == of(2 if both else 1)


def test_sys_exit_in_a_thread_ends_the_thread_alone(servers: Servers) -> None:
    ini = {"processes": "1"}
    environ = {"EXIT_LOG": "/dev/null"}
    server = servers.uwsgi(ini, app="exits", environ=environ).wait_serving()
    before = server.workers()
    assert server.get("/thread")[1] == b"ok"
    assert server.workers() == before


@pytest.mark.parametrize("plugin", [True, False], ids=["ours", "control"])
@pytest.mark.parametrize("who", ["mule", "spooler"])
def test_sys_exit_in_a_mule_and_in_a_spooler_runs_the_handlers_once(
    servers: Servers, who: str, plugin: bool, tmp_path: Path
) -> None:
    log = tmp_path / "exit"
    environ = {"EXIT_LOG": str(log)}
    (tmp_path / "spool").mkdir()
    ini = {
        "processes": "1",
        "spooler-frequency": "1",
        **({"mule": "exits:mule"} if who == "mule" else {}),
        **({"spooler": str(tmp_path / "spool")} if who == "spooler" else {}),
    }
    server = servers.uwsgi(ini, app="exits:order", environ=environ, plugin=plugin)
    server.wait_serving()
    server.wait_log("spawned uWSGI worker 1")
    (worker,) = re.findall(r"uWSGI worker 1 \(pid: (\d+)", server.log)
    (pid,) = {*children(server.pid)} - {int(worker)}
    if who == "spooler":
        # uWSGI wakes it by this signal, and would kill one that is not there yet.
        wait_until(lambda: catches(pid, signal.SIGUSR1), 20, "the spooler to be ready")
    with status_kept(server):
        server.get(f"/{who}")
        assert status(pid) == (MULE if who == "mule" else 7) << 8
    end = [] if plugin and SEEN else ["finalized"]
    assert notes(log)[pid] == ["second", "first", *end]
    assert f"{pid} code\n" in Path(f"{log}.out").read_text()
