"""multiprocessing's pools over a frozen heap: by fork and by a fork server."""

from __future__ import annotations

import json
import sys

import pytest
from conftest import PROGRAMS, PYPY, run

pytestmark = pytest.mark.skipif(PYPY, reason="freezes nothing")

CAN = sys.version_info >= (3, 12)  # make a heap immortal


def private(method: str, mode: str) -> list[float]:
    """MiB of each process that has read everything, 12 MiB of which it is to share."""
    done = run("process_pool.py", method, mode, cwd=PROGRAMS)
    assert (done.returncode, done.stderr) == (0, "")
    return [after / (1 << 20) for _, after in json.loads(done.stdout)]


@pytest.mark.parametrize(
    "method", [pytest.param("fork", marks=pytest.mark.deep), "forkserver"]
)
@pytest.mark.skipif(not CAN, reason="reading writes the counts of a mortal heap")
def test_processes_do_not_copy_what_they_read(method: str) -> None:
    assert max(private(method, "cow")) < 6


@pytest.mark.deep
@pytest.mark.parametrize("mode", ["plain", "gc"])
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_without_us_they_do(method: str, mode: str) -> None:
    """The control."""
    assert min(private(method, mode)) > 12


@pytest.mark.deep
@pytest.mark.skipif(CAN, reason="immortal from 3.12 on")
def test_a_mortal_heap_is_shared_no_better_than_without_us() -> None:
    """What the documentation says of 3.10 and 3.11."""
    assert min(private("fork", "cow")) > 8


def test_the_module_of_the_fork_server_does_nothing_elsewhere() -> None:
    done = run(
        "-c",
        "import gc, cowpreload.forkserver as f; print(f.REPORT, gc.get_freeze_count())",
    )
    report, frozen = done.stdout.split()
    # 3.12 and 3.13 count immortal objects of their own.
    assert report == "None"
    assert int(frozen) < 10_000


@pytest.mark.deep
def test_a_fork_server_that_cannot_freeze_serves_on() -> None:
    """It knows ImportError alone: anything else would end it, and hang its clients."""
    done = run("process_pool.py", "forkserver", "broken", cwd=PROGRAMS)
    assert len(json.loads(done.stdout)) == 2
    assert "cow: fork server not frozen: RuntimeError('planted')" in done.stderr
