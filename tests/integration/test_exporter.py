"""The exporter and the collector, scraped by their clients from real servers."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PROGRAMS, PYPY, QUICK, Servers, ready
from harness.processes import wait_until

from cowpreload.board import open_board

parser = pytest.importorskip("prometheus_client.openmetrics.parser")
text_parser = pytest.importorskip("prometheus_client.parser")

MIB = 1 << 20
LEAKING = {**QUICK, "cow-max-growth": "40M", "cow-max-private": "300M"}
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
Samples = dict[tuple[str, str, str], float]


def samples(text: str, by: object) -> Samples:
    """Values by name, server, and the slot, reason or nothing."""
    found = {}
    for family in by.text_string_to_metric_families(text):  # type: ignore[attr-defined]
        for each in family.samples:
            other = each.labels.get("slot", each.labels.get("reason", ""))
            found[each.name, each.labels.get("server", ""), other] = each.value
    return found


@pytest.fixture
def exporter() -> Iterator[tuple[str, int]]:
    """A running one: host and port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cowpreload", "exporter", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(
            r"cowpreload: metrics at http://(.*):(\d+)/metrics\n", line
        )
        assert found, line
        yield found[1], int(found[2])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


def get(
    exporter: tuple[str, int], path: str, headers: dict[str, str]
) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*exporter, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def scrape(exporter: tuple[str, int]) -> Samples:
    status, text = get(exporter, "/metrics", OPENMETRICS)
    assert status == 200
    return samples(text, parser)


def test_a_scrape_shows_all_servers_and_goes_on_when_one_ends(
    servers: Servers, exporter: tuple[str, int], tmp_path: Path
) -> None:
    """By their applications' names: other tests' servers run beside them."""
    shop, site = (f"{name}{os.getpid()}" for name in ("shop", "site"))
    for name in (shop, site):
        (tmp_path / f"{name}.py").write_text("from app import application\n")
    environ = {"PYTHONPATH": str(PROGRAMS)}
    flags = [part for key, value in LEAKING.items() for part in (f"--{key}", value)]
    first = servers.gunicorn(
        *("--worker-class", "cow", "--workers", "2", *flags),
        app=f"{shop}:application",
        directory=tmp_path,
        environ=environ,
    )
    last = first
    if not PYPY:
        ini = {**LEAKING, "processes": "1", "forkbomb-delay": "0"}
        last = servers.uwsgi(ini, app=site, directory=tmp_path, environ=environ)
    ready(first, 2)
    ready(last)

    shown = scrape(exporter)
    private = "cowpreload_worker_private_bytes"
    for slot in (1, 2):
        view = open_board(first.pid).view(slot)
        assert abs(shown[private, shop, str(slot)] - view.private) < 4 * MIB
    assert shown["cowpreload_workers", shop, ""] == 2
    assert shown["cowpreload_inherited_bytes", shop, ""] > MIB
    if not PYPY:
        assert shown[private, site, "1"] > 0
        assert shown["cowpreload_worker_limit_bytes", site, "1"] > 40 * MIB

    recyclings = "cowpreload_recyclings_total"
    assert shown[recyclings, shop, "max-growth"] == 0
    assert first.get("/grow?mb=80")[0] == 200
    wait_until(
        lambda: scrape(exporter)[recyclings, shop, "max-growth"] == 1, 30, "the counter"
    )
    status, text = get(exporter, "/metrics", {})
    assert status == 200
    assert samples(text, text_parser)[recyclings, shop, "max-growth"] == 1
    assert get(exporter, "/", {})[0] == 200
    assert get(exporter, "/etc/passwd", {})[0] == 404

    first.kill()
    shown = scrape(exporter)
    assert ("cowpreload_workers", shop, "") not in shown
    assert PYPY or ("cowpreload_workers", site, "") in shown


def test_any_worker_tells_of_all_in_an_applications_own_metrics(
    servers: Servers, tmp_path: Path
) -> None:
    """prometheus_client's multi-process mode, and its ordinary one."""
    (tmp_path / "files").mkdir()
    environ = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "files")}
    server = servers.on("sync", LEAKING, app="metered", environ=environ)
    ready(server, 2)
    assert server.get("/")[0] == 200
    pss = "cowpreload_worker_pss_bytes"

    def shown() -> Samples | None:
        found = samples(server.get("/metrics")[1].decode(), text_parser)
        return found if (pss, "metered", "2") in found else None

    found = wait_until(shown, 30, "both workers")
    view = open_board(server.pid).view(2)
    assert abs(found[pss, "metered", "2"] - view.pss) < 4 * MIB
    assert found["cowpreload_freeze_seconds", "metered", ""] > 0
    assert found["cowpreload_master_pss_bytes", "metered", ""] > MIB
    assert found["shop_pages_total", "", ""] >= 1
    alone = samples(server.get("/metrics/one")[1].decode(), text_parser)
    assert (pss, "metered", "1") in alone
    files = {each.name for each in (tmp_path / "files").iterdir()}
    assert not any("cow" in each for each in files)
