"""`cowpreload bench` on real servers, in its smallest form; and interrupted."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PYPY, deep, once
from harness.processes import alive, children, script, wait_until

from cowpreload import collector
from cowpreload.bench import cgroup, plots, pypy
from cowpreload.bench.allocators import ALLOCATORS
from cowpreload.bench.hall import Hall
from cowpreload.bench.journal import Journal
from cowpreload.bench.mode import SHOWN
from cowpreload.bench.scenario_tables import report
from cowpreload.bench.scenarios import (
    Options,
    allocators,
    caches,
    cpu,
    instagram,
    nelson,
)
from cowpreload.bench.site import Site, find_site, seeded
from cowpreload.immortal import WHY_NOT

pytestmark = pytest.mark.skipif(PYPY, reason="the bench runs on CPython")
VERSION = "{}.{}".format(*sys.version_info)
SECONDS = 900  # a machine that does much else
# What serves the site takes half a minute of a core when it is tiny, too: test_wheel
# runs the bench's smallest scenario on both hosts, test_bench_figures shows them all.
SIZES = pytest.mark.parametrize("size", deep("tiny", "quick"))
# Run together: one database, one plugin, one import of what draws.
SERVED = ("allocators", "instagram", "nelson")
Bench = Callable[[str, str], tuple[dict, str]]


def run(directory: Path, size: str, *scenarios: str) -> None:
    """Run them; `directory` gets the figures, and what was said and printed."""
    command = [script("cowpreload"), "bench", *scenarios, f"--{size}"]
    with (
        (directory / "said").open("w") as said,
        (directory / "printed").open("w") as on,
    ):
        done = subprocess.run(
            [*command, "--output", directory], stdout=on, stderr=said, timeout=SECONDS
        )
    (directory / "code").write_text(str(done.returncode))


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The figures of a scenario, and what was printed: the tiny ones are of one run."""

    def tiny(directory: Path) -> None:
        run(directory, "tiny", *SERVED)

    def figures(scenario: str, size: str) -> tuple[dict, str]:
        if size == "tiny" and scenario in SERVED:
            directory = once(tmp_path_factory, "bench-tiny", tiny)
        else:
            directory = tmp_path_factory.mktemp(scenario)
            run(directory, size, scenario)
        said = (directory / "said").read_text()
        assert (directory / "code").read_text() == "0", said
        assert " min in all" in said
        found = json.loads((directory / f"{scenario}-{VERSION}.json").read_text())
        assert found["complete"]
        drawn = (directory / f"{scenario}-{VERSION}.png").exists()
        assert drawn == (scenario in plots.DRAW and not plots.missing()), said
        return found, (directory / "printed").read_text()

    return figures


def marked(text: str) -> list[int]:
    """The processes with `text` in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


@SIZES
def test_the_attempts_of_the_article(bench: Bench, size: str) -> None:
    """The tiny run leaves some of the attempts out."""
    figures, printed = bench("instagram", size)
    assert figures["versions"]["python"] in printed
    plan = instagram.PLANS[size]
    assert set(figures["modes"]) == set(plan.only or [m.key for m in instagram.MODES])
    found = {key: each["summary"] for key, each in figures["modes"].items()}
    for host in ("gunicorn", "uwsgi"):
        plain, ours = (found[f"{host} {name}"] for name in ("plain", "all"))
        assert plain["fresh"]["private"]["median"] < 5e6
        assert ours["end"]["private"]["median"] < plain["end"]["private"]["median"]
        if alone := found.get(f"{host} no preload"):
            assert alone["fresh"]["private"]["median"] > 25e6
        # A library's gc.enable() undoes gc.disable(), and does nothing to a threshold.
        if disabled := found.get(f"{host} gc.disable()"):
            assert disabled["collector"]["enabled"]
        if threshold := found.get(f"{host} set_threshold(0)"):
            assert threshold["collector"]["threshold"][0] == 0
        # Finalization copies; os._exit does not, and neither do we.
        copied = plain["exit"]["pages"]["median"]
        assert copied > 1000
        assert ours["exit"]["pages"]["median"] < copied / 4
        if fast := found.get(f"{host} threshold+_exit"):
            assert fast["exit"]["pages"]["median"] < copied / 4


@SIZES
def test_the_page_of_the_paper(bench: Bench, size: str) -> None:
    figures, _ = bench("nelson", size)
    plan = nelson.PLANS[size]
    for host in (SHOWN[each] for each in plan.hosts):
        for mode in ("plain", "all"):
            found = figures["memory"][f"{host} {mode}"]
            points = [len(line) for line in found["private"]]
            assert points == [plan.bursts + 1] * nelson.WORKERS
            assert found["private"][0][-1] > found["private"][0][0]
        given = figures["throughput"][host]
        assert given["uncapped"]["all"]["failed"] == 0
        assert given["uncapped"]["ratio"]["n"] == plan.marks[-1] // plan.block
        if not cgroup.available() and "capped" in given:
            assert given["capped"]["cap"] < given["uncapped"]["peaks"]["plain"]


@pytest.mark.deep  # test_wheel asks the same of the wheel
def test_a_request_costs_processor_time_on_both_hosts(bench: Bench) -> None:
    check_cpu(*bench("cpu", "quick"), "quick")


def check_cpu(figures: dict, printed: str, size: str) -> None:
    """Of the whole server, divided by its requests; a page takes 10 to 20 ms here."""
    assert set(figures["cpu"]) == {"gunicorn", "uwsgi"}
    for found in figures["cpu"].values():
        assert 0.5 < found["plain"]["median"] < 1000
        assert 0.5 < found["all"]["median"] < 1000
        assert found["ratio"]["n"] == cpu.PLANS[size].pairs
        low, high = found["ratio"]["quartiles"]
        assert f"{found['ratio']['median']:.2f} ({low:.2f} to {high:.2f})" in printed


@pytest.mark.deep
def test_a_server_learns_what_to_warm(bench: Bench) -> None:
    """The tiny run has no list; what was found is warmed, and no request is lost."""
    figures, printed = bench("learn", "tiny")
    cold, found = (figures["modes"][f"gunicorn {n}"] for n in ("cold", "hidden"))
    assert cold["lost"] == found["lost"] == cold["replaced"] == 0
    assert [each["pages"] for each in cold["warmings"]] == [{}]
    if WHY_NOT:  # a mortal heap is not warmed anew
        return
    assert [each["pages"] for each in found["warmings"]][1]["traffic"] >= 2
    assert found["warmings"][1]["verdict"] == "confirmed"
    assert found["replaced"] == 2
    assert found["end"]["private"]["median"] < cold["end"]["private"]["median"]
    assert "gunicorn hidden" in printed


@pytest.mark.parametrize("size", ["tiny", *deep("quick")])
def test_a_cache_is_traced_where_it_is_not_frozen(tmp_path: Path, size: str) -> None:
    """It needs no site, and takes no time for one."""
    plan = caches.PLANS[size]
    journal = Journal(tmp_path / "caches.json", "caches", size, {"plan": vars(plan)})
    with Hall.closing(Site(tmp_path, tmp_path, {})) as hall:
        caches.run(hall, journal, plan, Options())
        assert not hall.wrong
    printed = report(journal.figures)
    for cache, _repeats in plan.caches:
        modes = journal.figures["caches"][str(cache)]
        assert set(modes) == set(plan.only or [mode.name for mode in caches.MODES])
        found = {name: each["summary"] for name, each in modes.items()}
        # A collection of the master's cache in the worker copies it.
        copied = found["plain"]["private"]["median"] / 4096
        assert copied + found["plain"]["pages"]["median"] > cache * 1e6 / 2 / 4096
        for name in ("worker", "settled"):
            assert found[name]["pages"]["median"] < 200
            assert (found[name]["settle"]["median"] > 0) is (name == "settled")
            assert f"\n{name} " in printed


@SIZES
def test_each_allocator_serves_both_pages(bench: Bench, size: str) -> None:
    figures, printed = bench("allocators", size)
    plan = allocators.PLANS[size]
    for name in plan.only or [each.name for each in ALLOCATORS]:
        modes = figures["allocators"]
        if "missing" in modes.get(name, {}):
            assert "not installed" in printed
            continue
        plain, ours = (modes[f"{name} {mode}"]["summary"] for mode in ("plain", "all"))
        for page in allocators.PAGES:
            private = [each[page]["private"]["median"] for each in (plain, ours)]
            assert private[1] < private[0]
        assert ours["exit"]["pages"]["median"] < plain["exit"]["pages"]["median"] / 4


@pytest.mark.deep  # test_demo interrupts what starts the same servers
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_has_and_ends_its_servers(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / f"scale-{VERSION}.json"
    mark = f"COW_TEST_MARK={tmp_path}"
    running = subprocess.Popen(
        [script("cowpreload"), "bench", "scale", "--tiny", "--output", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **dict([mark.split("=")])},
    )

    def measured() -> bool:
        return path.exists() and "heaps" in json.loads(path.read_text())

    try:
        wait_until(measured, SECONDS, "the first combination")
        # In the middle of the next one: its server is up.
        wait_until(
            lambda: measured() and any(map(children, children(running.pid))),
            SECONDS,
            "a server",
        )
        os.kill(running.pid, number)
        os.kill(running.pid, number)
        printed, said = running.communicate(timeout=120)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 128 + number, said
    assert "interrupted" in said
    assert "INCOMPLETE" in printed
    figures = json.loads(path.read_text())
    assert not figures["complete"]
    assert figures["heaps"]
    # Orphans too, whose parents nobody remembers.
    assert not [pid for pid in marked(mark) if alive(pid)]


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    done = subprocess.run(
        [script("cowpreload"), "bench", "facebook"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert (
        "scenario=facebook: no such scenario; write allocators, caches" in done.stderr
    )


# ---- control groups -------------------------------------------------------------


@pytest.fixture
def group() -> Iterator[cgroup.Cgroup]:
    if cgroup.available():
        pytest.skip(cgroup.available())
    with cgroup.group() as made:
        yield made
    assert not made.path.exists()


def test_a_capped_group_is_killed_above_its_cap(group: cgroup.Cgroup) -> None:
    group.cap(64 << 20)
    eat = [*group.prefix, sys.executable, "-c", "len(bytearray(200 << 20))"]
    assert subprocess.run(eat).returncode == -signal.SIGKILL
    assert group.kills() == 1
    assert 32 << 20 < group.peak() <= 64 << 20


def test_an_uncapped_group_says_its_peak(group: cgroup.Cgroup) -> None:
    eat = [*group.prefix, sys.executable, "-c", "len(bytearray(200 << 20))"]
    assert subprocess.run(eat).returncode == 0
    assert group.peak() > 190 << 20
    assert group.kills() == 0


# ---- PyPy -----------------------------------------------------------------------


def test_a_missing_pypy_is_named() -> None:
    with pytest.raises(pypy.NoPyPyError, match=r"pypy=/no/pypy: .* give --pypy PATH"):
        pypy.find("/no/pypy")


def test_without_thresholds_the_collector_is_disabled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threshold = gc.get_threshold()
    monkeypatch.delattr(gc, "set_threshold")
    try:
        collector.stop()
        assert not gc.isenabled()
        assert gc.get_threshold() == threshold
    finally:
        gc.enable()


@pytest.mark.skipif(not shutil.which("pypy3"), reason="no pypy3 on PATH")
def test_a_cow_worker_of_pypy_serves_without_major_collections(tmp_path: Path) -> None:
    found = pypy.prepare(pypy.find(None), tmp_path)
    with seeded(find_site()) as site, Hall.closing(site) as hall:
        with nelson._pypy_start(hall, found, False, None) as server:
            server.wait_serving()
            assert server.get("/") == (200, b"enabled: True\n")
        with nelson._pypy_start(hall, found, True, None) as server:
            server.wait_serving()
            assert server.get("/") == (200, b"enabled: False\n")
            assert server.get("/nelson/")[0] == 200
            assert "gc=off" in server.log
