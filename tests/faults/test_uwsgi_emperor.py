"""Two vassals of an emperor: one is reloaded, the other notices nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from conftest import PROGRAMS, QUICK, Servers, full, needs_uwsgi
from fault_table import Faults
from harness.processes import alive, children, script, wait_until
from harness.server import Server, free_port
from harness.under_load import LEAKING

pytestmark = needs_uwsgi
WORKERS = 2


@dataclass
class Vassal:
    """As much of a Server as a load needs; the emperor's end is its end."""

    ini: Path
    port: int
    log_path: Path

    @property
    def pid(self) -> int:
        return int(self.ini.with_suffix(".pid").read_text() or 0)  # being written

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def workers(self) -> list[int]:
        return children(self.pid)

    def is_up(self) -> bool:
        begun = self.log_path.exists() and self.ini.with_suffix(".pid").exists()
        return begun and self.pid > 0 and len(self.workers()) >= WORKERS

    def touch(self) -> None:
        """The emperor compares whole seconds."""
        later = max(time.time(), self.ini.stat().st_mtime) + 5
        os.utime(self.ini, (later, later))


def make_vassal(directory: Path, name: str, plugins: Path) -> Vassal:
    port, ini = free_port(), directory / f"{name}.ini"
    keys = {
        **QUICK,
        **LEAKING,
        "plugins-dir": str(plugins),
        "need-plugin": "cow",
        "http-socket": f"127.0.0.1:{port}",
        "chdir": str(PROGRAMS),
        "module": "app",
        "need-app": "true",
        "master": "true",
        "processes": str(WORKERS),
        "forkbomb-delay": "0",
        "disable-logging": "true",
        "safe-pidfile": str(ini.with_suffix(".pid")),
        "logto": str(directory / f"{name}.log"),
    }
    text = "".join(f"{key} = {value}\n" for key, value in keys.items())
    ini.write_text(f"[uwsgi]\n{text}")
    return Vassal(ini, port, directory / f"{name}.log")


@pytest.fixture(name="vassals")
def make_vassals(servers: Servers) -> Iterator[tuple[Vassal, Vassal]]:
    """Both, ready, of an emperor that looks each second."""
    directory = servers.directory / "vassals"
    directory.mkdir()
    plugins = servers.plugins()
    one, two = (make_vassal(directory, name, plugins) for name in ("one", "two"))
    command = [script("uwsgi"), "--emperor", str(directory), "--emperor-freq", "1"]
    emperor = Server(command, one.port, PROGRAMS, servers.directory / "emperor.log")
    try:
        wait_until(lambda: one.is_up() and two.is_up(), 60, f"vassals of {emperor.pid}")
        yield one, two
    finally:
        emperor.kill()


@pytest.mark.parametrize("host", full("uwsgi"))
def test_a_vassal_that_is_reloaded_loses_nothing_and_disturbs_no_other(
    vassals: tuple[Vassal, Vassal], faults: Faults, host: str
) -> None:
    one, two = (cast(Server, each) for each in vassals)
    touched = vassals[0]
    with (
        faults.under_load("emperor: reload", one, host, workers=WORKERS) as under,
        faults.under_load("emperor: neighbour", two, host, workers=WORKERS) as other,
    ):
        under.settle_in()
        other.settle_in()
        for _ in range(3):
            before, others = touched.workers(), two.workers()
            touched.touch()
            wait_until(lambda before=before: not any(map(alive, before)), 60, "workers")
            wait_until(touched.is_up, 60, "the vassal")
            assert others
