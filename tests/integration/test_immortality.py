"""The immortal heap on real servers."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from conftest import PYPY, Servers, deep, ready
from test_lifecycle import me, notes

from cowpreload.immortal import WHY_NOT

CAN = sys.implementation.name == "cpython" and (3, 12) <= sys.version_info < (3, 16)
can = pytest.mark.skipif(not CAN, reason="this interpreter has no immortal objects")


KINDS = ("sync", "asgi", "uwsgi")
REST = ("threaded", "gevent", "uvicorn", "uwsgi-threaded")
MODES = [*((host, "auto") for host in KINDS), ("sync", "off"), ("uwsgi", "off")]
MODES += deep(*((host, "auto") for host in REST))
MODES += deep(*((host, "off") for host in ("asgi", *REST)))


@pytest.mark.parametrize(("host", "immortal"), MODES)
def test_the_heap_is_immortal_where_it_can_be(
    servers: Servers, host: str, immortal: str
) -> None:
    """And requests are served: hosts have objects of their own among what they load."""
    server = servers.on(host, {"cow-immortal": immortal}).wait_serving(workers=2)
    for _ in range(0 if PYPY else 3):  # it has no counts to look at
        found = json.loads(server.get("/immortal")[1])
        assert set(found.values()) == {CAN and immortal == "auto"}
    assert ("immortal=0 " in server.log) is not (CAN and immortal == "auto")
    assert (f"cow: immortal=off: {WHY_NOT}\n" in server.log) is (
        not CAN and immortal == "auto"
    )
    assert "Traceback" not in server.log


@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("threaded")])
def test_on_is_refused_where_it_cannot_be(servers: Servers, host: str) -> None:
    options = {"cow-immortal": "on", "cow-exit": "normal"}
    server = servers.on(host, options)
    assert server.wait_exit() == 1
    reason = "exit=normal: a whole" if CAN else WHY_NOT
    assert f"immortal=on: {reason}" in server.log
    assert "; set it to auto or off" in server.log


@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("threaded")])
def test_a_normal_exit_keeps_the_heap_mortal(servers: Servers, host: str) -> None:
    server = ready(servers.on(host, {"cow-exit": "normal"}, workers=1))
    assert "cow: immortal=off: " in server.log
    assert "immortal=0 " in server.log
    server.signal(signal.SIGINT if host == "uwsgi" else signal.SIGTERM)
    assert server.wait_exit() == 0


@can
@pytest.mark.parametrize("host", ["sync", *deep("threaded")])
def test_an_immortal_master_runs_its_exit_handlers_and_finalizes_nothing(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    log = tmp_path / "exit"
    server = ready(servers.on(host, workers=1, environ={"EXIT_LOG": str(log)}))
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert notes(log)[server.pid] == ["before_fork", "second", "first"]


@pytest.mark.parametrize("immortal", ["auto", "off"])
def test_uwsgis_mule_runs_its_exit_handlers(
    servers: Servers, immortal: str, tmp_path: Path
) -> None:
    """It inherits the heap and ends by itself; uWSGI's master runs no handlers."""
    log = tmp_path / "exit"
    ini = {"processes": "1", "mules": "1", "cow-immortal": immortal}
    server = ready(servers.uwsgi(ini, environ={"EXIT_LOG": str(log)}))
    server.wait_log("spawned uWSGI mule 1")
    worker = me(server)["pid"]
    server.signal(signal.SIGINT)
    assert server.wait_exit() == 0
    found = notes(log)
    assert found.pop(server.pid) == ["before_fork"]
    assert found.pop(worker) == ["second", "first"]
    (said,) = found.values()
    assert said == ["second", "first"]


@can
def test_the_exit_status_of_gunicorns_master_is_kept(servers: Servers) -> None:
    """A worker that cannot boot halts the master with status 3."""
    server = servers.on("sync", {"cow-max-private": "300K"}, workers=1)
    assert server.wait_exit() == 3
    assert "immortal=0 " not in server.log


@pytest.mark.parametrize(("hook", "status"), [("1 / 0", 1), ("raise SystemExit(5)", 5)])
def test_a_hook_that_fails_at_the_end_decides_the_exit_status(
    servers: Servers, hook: str, status: int, tmp_path: Path
) -> None:
    """As without us; and the exit handlers run."""
    log, config = tmp_path / "exit", tmp_path / "hooks.py"
    config.write_text(f"def on_exit(server):\n    {hook}\n")
    flags = ["-c", str(config), "-k", "cow"]
    server = ready(servers.gunicorn(*flags, environ={"EXIT_LOG": str(log)}))
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == status
    assert notes(log)[server.pid][:3] == ["before_fork", "second", "first"]
    assert ("ZeroDivisionError" in server.log) is (status == 1)


@can
def test_a_reload_to_normal_exits_does_not_finalize_an_immortal_heap(
    servers: Servers, tmp_path: Path
) -> None:
    log, config = tmp_path / "exit", tmp_path / "settings.py"
    config.write_text("cow_exit = 'fast'\n")
    flags = ["-c", str(config), "-k", "cow"]
    server = ready(servers.gunicorn(*flags, environ={"EXIT_LOG": str(log)}))
    config.write_text("cow_exit = 'normal'\n")
    server.signal(signal.SIGHUP)
    server.wait_log("cow: exit=normal: the heap is immortal since the start")
    ready(server)
    worker = me(server)["pid"]
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert notes(log)[worker] == ["second", "first"]


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_server_starts_whatever_the_freeze_meets(servers: Servers, host: str) -> None:
    environ = {"HOSTILE": "all"}
    server = servers.on(host, app="hostile", environ=environ).wait_serving()
    if CAN:  # else there is no walk that would ask anybody
        assert "cow: immortal in part (" in server.log
        assert "SystemExit(3)" in server.log
    assert "Traceback" not in server.log
