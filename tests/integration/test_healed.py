"""`cow-merge = self`: copies that are equal again are given back, nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAMS, PYPY, Servers, deep
from harness.processes import wait_until

from cowpreload import _core
from cowpreload._core import lib

pytestmark = [
    pytest.mark.skipif(PYPY, reason="PyPy's heap is not moved"),
    pytest.mark.each_python,
]
MORTAL = {"cow-merge": "self", "cow-immortal": "off"}
HEAP = {"HEAP_MB": "40"}


def private(pid: int) -> int:
    """Bytes of private memory."""
    return _core.take_reading(pid).private


@pytest.mark.parametrize("seed", ["1", *deep(*map(str, range(2, 12)))])
def test_a_heal_changes_no_byte_whatever_was_written(seed: str) -> None:
    """The child compares all of the heap before and after each heal."""
    done = subprocess.run(
        [sys.executable, PROGRAMS / "healed.py", seed, "12" if seed == "1" else "60"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not done.returncode, done.stderr
    copied, own, wrong, right = done.stdout.split()
    assert (wrong, right) == ("0", "True")
    if not _core.immortal_why_not():
        return  # freeze() has made it immortal: little was copied
    assert int(copied) > 20_000_000
    assert int(own) < 5_000_000


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_worker_gives_back_what_reading_has_copied(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, MORTAL, workers=1, environ=HEAP).wait_serving()
    server.wait_log("cow: merge=self moved=")
    (worker,) = server.workers()
    total = server.get("/read")[1]

    def healed() -> bool:
        # uWSGI has no moment between two requests but after one.
        assert server.get("/404")[0] == 404
        return private(worker) < 8_000_000

    wait_until(healed, 30, "the copies to be given back")
    assert server.get("/read")[1] == total
    assert server.workers() == [worker]


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
def test_a_worker_is_healed_before_it_is_recycled(servers: Servers, host: str) -> None:
    """Copies alone take it over its limit, each second."""
    options = {
        **MORTAL,
        "cow-max-private": "16M",
        "cow-min-lifetime": "0",
        "cow-jitter": "0",
        "cow-strikes": "1",
        "cow-check-interval": "0.1",
    }
    server = servers.on(host, options, workers=1, environ=HEAP).wait_serving()
    (worker,) = server.workers()
    for _ in range(30):
        assert server.get("/read")[0] == 200
    assert server.workers() == [worker], "it was recycled"
    assert " recycled " not in server.log


def output(program: str, *arguments: str) -> str:
    """What one of our programs prints."""
    done = subprocess.run(
        [sys.executable, PROGRAMS / program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def test_a_leaking_worker_is_recycled_however_often_it_heals_unasked() -> None:
    """Each heal renewed the word of the last one that was asked for: kept for ever."""
    assert output("leaking.py") == "1 1 1 0 True 64"


def test_a_heap_that_is_moved_again_keeps_nothing_of_the_file_before() -> None:
    """A few pages that were zero by then stayed, and with them a file of 40 MB."""
    assert output("moved_again.py").startswith("1 cow: merge=self moved=")


def test_a_heap_that_could_not_be_compared_is_not_moved() -> None:
    """Under ulimit -v it was moved, called "in part", and never healed."""
    assert output("moved_again.py", "limited") == (
        "0 cow: merge=off: Cannot allocate memory"
    )


def test_a_move_without_a_beginning_says_when_it_would_act() -> None:
    """Celery's case, which was told of an allocator that it has."""
    command = "from cowpreload import healing; print(healing.move().line())"
    done = subprocess.check_output([sys.executable, "-c", command], text=True)
    assert "it acts from the start of a server of gunicorn or uWSGI on" in done


@pytest.mark.parametrize("host", ["sync", *deep("uwsgi")])
def test_a_worker_with_a_thread_gives_nothing_back_and_says_so(
    servers: Servers, host: str
) -> None:
    options = {**MORTAL, "cow-fork-safety": "off"}
    if host == "uwsgi":
        options["enable-threads"] = "true"
    server = servers.on(host, options, workers=1, environ=HEAP).wait_serving()
    server.get("/poller")
    server.get("/read")
    server.wait_log("cow: merge=self: nothing is given back: another thread runs")
    assert server.get("/read")[0] == 200


def test_threaded_workers_are_told_that_they_heal_nothing(servers: Servers) -> None:
    server = servers.on("threaded", {"cow-merge": "self"}, workers=1).wait_serving()
    server.wait_log("cow: merge=self: no effect: it needs the sync worker")


def test_a_reload_to_self_says_that_it_has_no_effect(
    servers: Servers, tmp_path: Path
) -> None:
    config = tmp_path / "settings.py"
    config.write_text("cow_merge = 'off'\n")
    server = servers.gunicorn("-c", str(config), "-k", "cow").wait_serving()
    config.write_text("cow_merge = 'self'\n")
    server.signal(signal.SIGHUP)
    server.wait_log("cow: merge=self: no effect: it acts from the next start on")


def test_files_of_limited_size_leave_the_heap_where_it_is(servers: Servers) -> None:
    limited = ("prlimit", "--fsize=100000000")
    done = subprocess.run(
        [*limited, sys.executable, PROGRAMS / "healed.py", "1", "1"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "the size of files is limited" in done.stderr


def test_healing_takes_a_small_part_of_a_workers_time() -> None:
    second = 1_000_000
    assert lib.cow_heal_pays(2000, second, second // 100, 0)
    assert not lib.cow_heal_pays(2000, second, second // 20, 0)
    assert not lib.cow_heal_pays(100, second, second // 100, 0)
    assert lib.cow_heal_pays(100, second, second // 100, 1), "sooner when idle"
