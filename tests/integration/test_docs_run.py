"""The quick start, typed as the pages show it, gives what they say.

A page's own address is replaced by a free port, and a folder of the plugin by the
tests'; nothing else is.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from conftest import SITE, Servers, needs_uwsgi, ready, require_class, run
from harness.documents import ROOT, blocks, commands
from harness.server import Server

README = ROOT / "README.md"
QUICK_START = ROOT / "docs" / "quick-start.md"
MIB = 1 << 20
IMMORTAL = sys.version_info >= (3, 12) and sys.implementation.name == "cpython"


def files(page: Path, directory: Path) -> Path:
    """The folder with the files that a page says to save."""
    for each in blocks(page):
        if each.file and each.file.endswith(".py"):
            (directory / each.file).write_text(each.text)
    return directory


def typed(page: Path, line: str) -> list[str]:
    """The arguments of the one command of a page that has `line` in it."""
    (found,) = (each for each in commands(page) if line in each.line)
    return re.sub(r" --bind \S+", "", found.line).split(maxsplit=1)[1].split()


def shown(page: Path, line: str) -> str:
    """What a page shows below a command."""
    return next(
        "\n".join(each.shown) for each in commands(page) if line in each.line
    ).strip()


def memory(pid: int) -> dict[str, int]:
    """A process's figures, in bytes, with its page tables."""
    proc = Path("/proc") / str(pid)
    text = (proc / "smaps_rollup").read_text() + (proc / "status").read_text()
    return {
        name: int(size) * 1024
        for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.M)
    }


def check(server: Server, workers: int) -> None:
    """curl and status, and the sums of docs/limits.md."""
    for _ in range(workers + 2):
        status, body = server.get("/")
        assert (status, body.decode().strip()) == (200, shown(README, "curl"))
    done = run("-m", "cowpreload", "status", str(server.pid))
    rows = [each.split() for each in done.stdout.splitlines()]
    wanted = [each.split() for each in shown(README, "cowpreload status").splitlines()]
    assert [each[0] for each in rows[:4]] == [each[0] for each in wanted[:4]]
    assert rows[3] == wanted[3]
    pids = server.workers()
    private = [memory(pid)["Private_Dirty"] for pid in pids]
    total = sum(memory(pid)["Pss"] for pid in [server.pid, *pids])
    heap = int(re.search(r"heap=(\d+)MiB", server.log)[1]) * MIB  # type: ignore[index]
    if IMMORTAL:
        assert max(private) < 4 * MIB  # 1.7 in the README
    # heap + workers x (private + 1 MiB), of which the last is for page tables.
    assert total <= heap + sum(private)
    assert max(memory(pid)["VmPTE"] for pid in pids) < MIB


def test_the_quick_start_of_gunicorn(servers: Servers, tmp_path: Path) -> None:
    *options, app = typed(README, "--cow-warmup / ")
    assert app == "hello"
    server = servers.gunicorn(*options, app=app, directory=files(README, tmp_path))
    check(ready(server, 4), 4)


@needs_uwsgi
@pytest.mark.deep
def test_the_quick_start_of_uwsgi(servers: Servers, tmp_path: Path) -> None:
    (block,) = (each for each in blocks(README) if each.file == "uwsgi.ini")
    ini = dict(re.findall(r"^([\w-]+) = (.*)$", block.text, re.M))
    for ours in ("plugins-dir", "need-plugin", "http-socket"):
        ini.pop(ours)
    server = servers.uwsgi(ini, app=None, directory=files(README, tmp_path))
    check(ready(server, 4), 4)


@pytest.mark.deep
@pytest.mark.parametrize("line", ["--workers 4", "--workers 4 --preload"])
def test_without_us_workers_have_what_the_readme_says(
    servers: Servers, tmp_path: Path, line: str
) -> None:
    assert f"`gunicorn {line}`" in README.read_text()
    directory = files(README, tmp_path)
    server = servers.gunicorn(*line.split(), app="hello", directory=directory)
    server.wait_serving(workers=4)
    for _ in range(100):
        server.get("/")
    assert min(memory(pid)["Private_Dirty"] for pid in server.workers()) > 25 * MIB


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "needs", "package"),
    [
        ("hello_flask:app", "", "flask"),
        ("cow_uvicorn", "uvicorn", "fastapi"),
        ("cow_asgi", "asgi", "fastapi"),
    ],
)
def test_the_quick_start_of_frameworks(
    servers: Servers, tmp_path: Path, command: str, needs: str, package: str
) -> None:
    pytest.importorskip(package, reason=f"no {package} beside this interpreter")
    if needs:
        require_class(needs)
    *options, name = typed(QUICK_START, command)
    directory = files(QUICK_START, tmp_path)
    server = servers.gunicorn(*options, app=name, directory=directory)
    assert b"hello" in ready(server, 4).get("/")[1]
    assert "cow: warmup path=/ warmed" in server.log or "path=/," in server.log


@pytest.mark.deep
def test_the_quick_start_of_django(servers: Servers) -> None:
    """And that the memory of workers on the example site is what limits.md says."""
    environ = {"SHOP_DB": str(servers.database()), "SHOP_NELSON": "0"}
    *options, name = typed(QUICK_START, ":8000 shop.wsgi")
    skip = ["--cow-warmup-skip", "/probe/", "--config", "/dev/null"]
    server = servers.gunicorn(
        *options, *skip, app=name, directory=SITE, environ=environ
    )
    ready(server, 4)
    for number in range(200):
        assert server.get(f"/browse/{number % 700 + 1}/")[0] == 200
    pids = server.workers()
    private = [memory(pid)["Private_Dirty"] for pid in pids]
    heap = int(re.search(r"heap=(\d+)MiB", server.log)[1]) * MIB  # type: ignore[index]
    assert sum(memory(pid)["Pss"] for pid in [server.pid, *pids]) <= heap + sum(private)
    assert max(memory(pid)["VmPTE"] for pid in pids) < MIB
    done = run("-m", "cowpreload", "status", str(server.pid), "--json")
    assert len(json.loads(done.stdout)["servers"]) == 1
