"""A SIGHUP that changes the worker class of a running gunicorn."""

from __future__ import annotations

import signal

import pytest
from conftest import Servers
from harness.processes import wait_until
from harness.server import Server

KEPT = "cow: reload keeps the worker class it had; "


def reload(server: Server, conf: str) -> None:
    """Return when the workers of the new configuration have taken over."""
    before = set(server.workers())
    server.log_path.with_name("conf").write_text(conf)
    server.signal(signal.SIGHUP)
    server.wait_log("Hang up: Master")
    wait_until(
        lambda: server.workers() and not before & set(server.workers()),
        20,
        "new workers",
    )
    assert server.get("/")[0] == 200


@pytest.mark.parametrize(
    ("begun", "wanted", "why"),
    [
        ("sync", "worker_class = 'cow'", "this server runs SyncWorker"),
        ("sync", "worker_class = 'cow'\ncow_strikes = 0", "this server runs Sync"),
        ("sync", "worker_class = 'cow_tornado'", "worker_class=cow_tornado: "),
        ("cow", "worker_class = 'sync'", "worker_class=sync: this server runs CowW"),
        (
            "cow",
            "worker_class = 'cow'\ncow_worker = 'gthread'",
            "cow_worker=gthread: this server runs CowWorker",
        ),
        ("cow", "worker_class = 'cow_asgi'", "this server runs CowWorker"),
        ("cow", "worker_class = 'nowhere.Worker'", "class uri 'nowhere.Worker'"),
    ],
)
def test_a_reload_that_would_change_sides_keeps_the_server_as_it_is(
    servers: Servers, begun: str, wanted: str, why: str
) -> None:
    environ = {"CONF": f"worker_class = '{begun}'"}
    server = servers.gunicorn("-c", "changing.py", environ=environ).wait_serving()
    reload(server, wanted)
    line = server.wait_log(KEPT)
    assert why in line
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0


def test_a_reload_may_change_what_has_nothing_to_do_with_us(servers: Servers) -> None:
    environ = {"CONF": "worker_class = 'sync'"}
    server = servers.gunicorn("-c", "changing.py", environ=environ).wait_serving()
    reload(server, "worker_class = 'gthread'")
    assert KEPT not in server.log


def test_a_reload_to_our_class_without_the_hook_serves_on_without_us(
    servers: Servers,
) -> None:
    environ = {"CONF": "worker_class = 'sync'", "COWPRELOAD_STARTUP": "0"}
    server = servers.gunicorn("-c", "changing.py", environ=environ).wait_serving()
    reload(server, "worker_class = 'cowpreload.hosts.gunicorn.CowWorker'")
    server.wait_log("nothing was loaded before the first fork: serving on without")


def test_a_fault_in_the_settings_after_a_reload_to_our_class_ends_no_server(
    servers: Servers,
) -> None:
    """Without the hook: what was never loaded by us had no log to say it to."""
    ours = "worker_class = 'cowpreload.hosts.gunicorn.CowWorker'"
    environ = {"CONF": "worker_class = 'sync'", "COWPRELOAD_STARTUP": "0"}
    server = servers.gunicorn("-c", "changing.py", environ=environ).wait_serving()
    reload(server, ours)
    reload(server, f"{ours}\ncow_max_privat = '200M'")
    server.wait_log("cow: reload keeps the settings it had; ")
    assert "cow_max_privat: no such setting" in server.log
