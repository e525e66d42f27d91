"""The event log of real servers: every kind, logrotate, and what is refused."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from conftest import QUICK, Servers, needs_uwsgi, ready
from harness.processes import wait_until
from harness.server import Server

from cowpreload import events as declared

HOSTS = ["sync", "uwsgi"]
MIB = 1 << 20


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def of(path: Path, kind: str) -> list[dict[str, Any]]:
    return [each for each in read(path) if each["event"] == kind]


def recycle(server: Server, path: Path, count: int = 1) -> dict[str, Any]:
    """Have one worker recycled; its event."""
    before = len(of(path, "recycling")) if path.exists() else 0
    assert server.get("/grow?mb=80")[0] == 200

    def gone() -> list[dict[str, Any]]:
        return of(path, "recycling")[before:] if path.exists() else []

    event: dict[str, Any] = wait_until(gone, 30, "the event")[0]
    return event


@pytest.mark.parametrize("host", HOSTS)
def test_the_events_of_a_server_are_those_of_its_log(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    """From the start to the end, through logrotate's two ways, as its user sees it."""
    path = tmp_path / "events.jsonl"
    options = {
        **QUICK,
        "cow-max-growth": "40M",
        "cow-warmup": "/",
        "cow-event-log": str(path),
    }
    server = servers.on(host, options, workers=1, environ={"BREAK": "thread"})
    worker = ready(server).workers()[0]
    wait_until(lambda: of(path, "new_worker"), 30, "the first worker")
    kinds = [each["event"] for each in read(path)]
    assert sorted(kinds) == sorted(
        ["start", "warm_up", "finding", "freeze", "new_worker"]
    )
    start, freeze = of(path, "start")[0], of(path, "freeze")[0]
    assert start["host"] == {"sync": "gunicorn"}.get(host, host)
    assert start["host_version"]
    assert start["settings"]["max-growth"] == "40MiB"
    assert of(path, "warm_up")[0]["pages"] == {"list": 1}
    assert of(path, "finding")[0]["where"] in server.log
    assert freeze["inherited_bytes"] > MIB
    assert freeze["freeze_seconds"] > 0
    assert f"objects={freeze['objects']} " in server.log
    new = of(path, "new_worker")[0]
    assert (new["worker"], new["generation"], new["pid"]) == (1, 1, worker)
    assert MIB / 4 < new["private_bytes"] < 40 * MIB

    end = recycle(server, path)
    assert (end["pid"], end["reason"], end["action"]) == (
        worker,
        "max-growth",
        "recycled",
    )
    line = server.wait_log(f"pid={worker} recycled")
    assert f" private={end['private_bytes'] // MIB}MiB " in line
    assert f" growth-limit={end['limit_bytes'] // MIB}MiB " in line
    wait_until(lambda: len(of(path, "new_worker")) == 2, 30, "its replacement")

    # logrotate: moved, and the host told of it; then copied and cut, and nobody told.
    moved = path.rename(tmp_path / "events.1")
    before = len(read(moved))
    wait_until(path.exists, 30, "a new file")
    recycle(ready(server), path)
    assert len(read(moved)) == before
    path.write_text("")
    recycle(ready(server), path)
    assert path.read_text()[0] == "{"

    # uWSGI is another process image then, and starts anew.
    ready(server)  # a worker that boots misses uWSGI's signal
    server.signal(signal.SIGHUP)

    def is_reloaded() -> bool:
        found = read(path)
        if host == "uwsgi":
            kinds = [each["event"] for each in found]
            return "start" in kinds and kinds[-1] == "new_worker"
        return any(each.get("worker") == 2 for each in found)  # beside the old one

    wait_until(is_reloaded, 30, "the reload")
    assert "error managing signal" not in server.log

    ready(server).signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert of(path, "end")[-1]["seconds"] > 0
    for each in read(path) + read(moved):
        keys = {*declared.COMMON, *declared.KINDS[each["event"]].keys}
        assert set(each) == keys
        assert each["master_pid"] == server.pid


@needs_uwsgi
def test_a_worker_that_is_killed_while_the_server_ends_is_an_event(
    servers: Servers, tmp_path: Path
) -> None:
    """uWSGI's master closed the file when it was told to end: the log had its line."""
    path, when = tmp_path / "events.jsonl", tmp_path / "when"
    options = {**QUICK, "cow-max-private-hard": "80M", "cow-event-log": str(path)}
    server = ready(servers.on("uwsgi", options, workers=1))
    worker = server.workers()[0]
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(server.get, f"/hang?s=50&mb=100&when={when}")
        wait_until(Path(f"{when}.asked").exists, 30, "the request")
        server.signal(signal.SIGHUP)  # the worker may finish it
        wait_until(lambda: of(path, "end"), 30, "the end")
        when.touch()
        assert isinstance(asked.exception(60), (OSError, HTTPException))
    wait_until(lambda: len(of(path, "start")) == 2, 30, "the server anew")
    kinds = [each["event"] for each in read(path)]
    assert kinds.index("end") < kinds.index("recycling") < kinds.index("start", 1)
    (killed,) = of(path, "recycling")
    assert (killed["pid"], killed["action"]) == (worker, "killed")


@pytest.mark.parametrize("host", HOSTS)
def test_a_path_that_cannot_be_opened_is_refused_at_the_start(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    missing = tmp_path / "missing" / "events.jsonl"
    server = servers.on(host, {"cow-event-log": str(missing)}, workers=1)
    assert server.wait_exit() == 1
    assert f"event-log={missing}: No such file or directory; name a file" in server.log


@pytest.mark.deep
@pytest.mark.parametrize("host", HOSTS)
def test_a_path_that_cannot_be_opened_ends_no_reload(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    path = tmp_path / "away" / "events.jsonl"
    path.parent.mkdir()
    server = servers.on(host, {**QUICK, "cow-event-log": str(path)}, workers=1)
    worker = ready(server).workers()[0]
    path.unlink()
    path.parent.rmdir()
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.workers() not in ([], [worker]), 30, "the reload")
    ready(server).signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert f"event-log={path}" in server.log
