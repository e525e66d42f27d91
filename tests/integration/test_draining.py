"""What a worker that is told to go does with what it has: docs/worker-classes.md."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Servers, deep, ready, require_class
from harness.processes import alive, wait_until
from harness.server import Server
from test_lifecycle import LOOPS, exit_notes


def begin(server: Server, path: str, found: list[Any]) -> threading.Thread:
    """Make a request in a thread, and return when the worker has it."""

    def request() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            found.append(server.get(path))

    thread = threading.Thread(target=request)
    thread.start()
    time.sleep(0.5)  # no condition shows that a request is being served
    return thread


def waiting(host: str, seconds: float) -> str:
    """A page that takes this long, and lets others be served meanwhile."""
    return f"/{'hang' if host == 'gevent' else 'await'}?s={seconds}"


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, shared: Servers) -> Iterator[Server]:
    """A host with one worker at a time, which has a minute to leave in."""
    options = {"graceful-timeout": "60"}
    with shared.on(request.param, options, workers=1) as server:
        yield server


def on_each(*hosts: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("server", hosts, indirect=True)


@on_each("threaded", *LOOPS)
def test_an_idle_connection_is_told_before_it_is_closed(server: Server) -> None:
    """A client sends on a connection that nobody has announced to close."""
    ready(server)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    told, deadline = False, time.monotonic() + 20
    closing = False
    while not closing:
        connection.request("GET", "/")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"ok")
        closing = response.will_close
        if not told:
            os.kill(server.workers()[0], signal.SIGTERM)
            told = True
        assert time.monotonic() < deadline, "the end was never announced"
        time.sleep(0.2)  # idle, less than the keepalive timeout
    connection.close()


@on_each("asgi", "uvicorn")
def test_a_connection_that_a_response_has_promised_to_keep_is_kept(
    server: Server,
) -> None:
    """The worker is told to go between the head of a response and its end."""
    ready(server)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/begin?s=1.5")
    response = connection.getresponse()
    assert not response.will_close
    os.kill(server.workers()[0], signal.SIGTERM)
    assert response.read() == b"ok"
    connection.request("GET", "/")
    response = connection.getresponse()
    assert (response.status, response.read(), response.will_close) == (200, b"ok", True)
    connection.close()


@pytest.mark.parametrize("host", ["asgi", *deep("gevent", "uvicorn")])
def test_a_request_in_flight_is_waited_for_longer_than_timeout(
    servers: Servers, host: str
) -> None:
    """The heart beats meanwhile: uvicorn's and gunicorn's asgi's do not without us."""
    options = {"timeout": "2", "graceful-timeout": "20"}
    server = ready(servers.on(host, options, workers=1))
    (worker,) = server.workers()
    found: list[Any] = []
    request = begin(server, waiting(host, 4), found)
    os.kill(worker, signal.SIGTERM)
    request.join()
    assert [status for status, _ in found] == [200]
    assert "WORKER TIMEOUT" not in server.log


@pytest.mark.parametrize(
    ("host", "statuses"), [("asgi", []), *deep(("gevent", []), ("uvicorn", [500]))]
)
def test_exit_handlers_run_when_graceful_timeout_ends_a_request(
    servers: Servers, host: str, statuses: list[int], tmp_path: Path
) -> None:
    log = tmp_path / "exit"
    options = {"graceful-timeout": "6"}
    server = servers.on(host, options, workers=1, environ={"EXIT_LOG": str(log)})
    (worker,) = ready(server).workers()
    found: list[Any] = []
    request = begin(server, waiting(host, 60), found)
    server.signal(signal.SIGTERM)
    server.wait_exit()
    request.join()
    assert exit_notes(log, worker) == ["second", "first"]
    assert [status for status, _ in found] == statuses


@on_each(*LOOPS)
def test_a_connection_that_never_sends_does_not_hold_a_worker(server: Server) -> None:
    """Browsers connect ahead."""
    (worker,) = ready(server).workers()
    with socket.create_connection(("127.0.0.1", server.port)):
        assert server.get("/")[0] == 200  # later than it, so it was accepted too
        os.kill(worker, signal.SIGTERM)
        wait_until(lambda: not alive(worker), 30, "the worker to be gone")


@on_each("asgi", "uvicorn")
def test_a_websocket_is_told_to_connect_anew(server: Server) -> None:
    """gunicorn's asgi waits for its end until graceful_timeout, and cuts it off."""
    client = pytest.importorskip("websockets.sync.client")
    closed = pytest.importorskip("websockets.exceptions").ConnectionClosed
    (worker,) = ready(server).workers()
    with client.connect(f"ws://127.0.0.1:{server.port}/ws") as talk:
        talk.send("one")
        assert talk.recv(timeout=10) == "one"
        os.kill(worker, signal.SIGTERM)
        with pytest.raises(closed) as caught:
            talk.recv(timeout=20)
    assert caught.value.rcvd.code == 1012
    wait_until(lambda: not alive(worker), 20, "the worker to be gone")


@pytest.mark.parametrize("changed", ["remove_reader", "_keepalive_timeout"])
def test_a_gunicorn_that_has_changed_does_not_keep_a_worker_from_leaving(
    servers: Servers, changed: str
) -> None:
    require_class("asgi")
    server = servers.gunicorn(
        *("--config", "changed_asgi.py", "--worker-class", "cow_asgi"),
        *("--keep-alive", "1", "--graceful-timeout", "2", "--timeout", "60"),
        app="app:asgi",
        environ={"CHANGED": changed},
    )
    (worker,) = ready(server).workers()
    with socket.create_connection(("127.0.0.1", server.port)):
        assert server.get("/")[0] == 200  # later than it, so it was accepted too
        os.kill(worker, signal.SIGTERM)
        wait_until(lambda: not alive(worker), 30, "the worker to be gone")
    said = f"cow: drained in part (AttributeError('no {changed}"
    assert (said in server.log) is (changed == "remove_reader")
