"""Any of gunicorn's worker classes with ours before it, on real servers."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from conftest import Servers, ready, require_class
from harness.processes import alive, wait_until
from test_lifecycle import me, notes

OWN = "serves"


@pytest.mark.parametrize(
    ("arguments", "app", "needs"),
    [
        (["--cow-worker", "gthread"], "app", ""),
        (["--cow-worker", "gunicorn.workers.gthread.ThreadWorker"], "app", ""),
        (["--cow-worker", "gevent"], "app", "gevent"),
        (["--cow-worker", "uvicorn_worker.UvicornWorker"], "app:asgi", "uvicorn"),
        (["--cow-worker", "own_worker.OwnWorker"], "app", OWN),
        (["--config", "python:own_worker"], "app", OWN),
    ],
)
def test_every_name_that_gunicorn_takes_runs_with_us(
    servers: Servers, arguments: list[str], app: str, needs: str
) -> None:
    if needs in ("gevent", "uvicorn"):
        require_class(needs)
    server = servers.gunicorn("-k", "cow", "--cow-warmup", "/", *arguments, app=app)
    assert me(server.wait_serving())["worker"]["generation"] == 1
    assert "warmup-requests=2 findings=0" in server.log
    if needs == OWN:
        assert "own worker serves" in server.log


def test_a_worker_class_that_is_not_taken_is_named(servers: Servers) -> None:
    """Without the start-up hook gunicorn never asks which class to use instead."""
    environ = {"COWPRELOAD_STARTUP": "0", "COW_WORKER": "gthread"}
    server = servers.gunicorn("-k", "egg:cowpreload#cow", environ=environ)
    server.wait_serving()
    assert "cow: worker=gthread: no effect; it needs worker_class=cow" in server.log


def test_a_reload_with_another_class_keeps_the_one_that_runs(
    servers: Servers, tmp_path: Path
) -> None:
    config = tmp_path / "conf.py"
    config.write_text("worker_class = 'cow'\ncow_worker = 'gthread'\n")
    server = ready(servers.gunicorn("--config", str(config)))
    (first,) = server.workers()
    config.write_text("worker_class = 'cow'\ncow_worker = 'no.such.Class'\n")
    server.signal(signal.SIGHUP)
    server.wait_log("cow: reload keeps the worker class it had; cow_worker=no.such")
    wait_until(lambda: not alive(first), 20, "the old worker to be gone")
    assert me(server.wait_serving())["worker"]["generation"] >= 1


@pytest.mark.parametrize(
    ("needs", "arguments"),
    [
        ("asgi", ["-k", "cow_asgi", "--asgi-lifespan", "off"]),
        ("uvicorn", ["-k", "cow", "--cow-worker", "own_uvicorn.OwnUvicorn"]),
    ],
)
def test_a_lifespan_that_workers_do_not_run_is_not_run_in_the_warm_up(
    servers: Servers, needs: str, arguments: list[str], tmp_path: Path
) -> None:
    require_class(needs)
    log = tmp_path / "exit"
    server = servers.gunicorn(
        *arguments, "--cow-warmup", "/me", app="app:asgi",
        environ={"EXIT_LOG": str(log)},
    )  # fmt: skip
    worker = me(server.wait_serving())["pid"]
    server.signal(signal.SIGTERM)
    server.wait_exit()
    assert notes(log)[worker] == ["second", "first"]
    assert "lifespan" not in log.read_text()
