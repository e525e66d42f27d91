"""Sealing, in programs of their own: what is filled stays filled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from conftest import PYPY, run

pytestmark = pytest.mark.skipif(PYPY, reason="PyPy's objects move; it has no holes")


def fragmented(mode: str, **environ: str) -> dict[str, Any]:
    done = run(
        "tests/programs/fragmented.py", mode, env={**os.environ, **environ}, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_young_objects_land_between_inherited_ones() -> None:
    """Private memory of a worker: what it allocates, not a page for each object."""
    plain, sealed = fragmented("off"), fragmented("on")
    assert sealed["sealed"]["unsealed"] == []
    assert plain["private"] > 4 * plain["young"]
    assert sealed["private"] < 1.3 * sealed["young"]
    # What the program itself frees to tell its figures.
    assert sealed["free_blocks"] < 3000 < plain["free_blocks"] / 5
    assert sealed["free_chunks"] < 20_000 < plain["free_chunks"] / 100
    assert sealed["master_grew"] - plain["master_grew"] < 1 << 20


def test_a_workers_threads_allocate_in_the_heaps_of_the_masters() -> None:
    plain, sealed = (
        json.loads(run("tests/programs/arenas.py", mode, check=True).stdout)
        for mode in ("off", "on")
    )
    assert plain["private"] > 4 * plain["young"]
    assert sealed["private"] < 1.4 * sealed["young"]
    assert sealed["master_grew"] - plain["master_grew"] < 3 << 20


def test_threads_that_take_and_free_many_sizes_need_no_more_than_without() -> None:
    plain, sealed = (
        int(run("tests/programs/churned.py", mode, check=True).stdout)
        for mode in ("off", "on")
    )
    assert sealed < 1.1 * plain


def test_objects_of_malloc_are_filled_with_the_c_heap() -> None:
    plain = fragmented("off", PYTHONMALLOC="malloc")
    sealed = fragmented("on", PYTHONMALLOC="malloc")
    assert sealed["sealed"]["unsealed"] == []
    assert plain["private"] > 2 * plain["young"]
    assert sealed["private"] < 1.4 * sealed["young"]


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
@pytest.mark.parametrize("python", ["pymalloc", "malloc"])
def test_a_c_heap_that_is_not_glibcs_is_left_alone(library: str, python: str) -> None:
    path = Path("/usr/lib/x86_64-linux-gnu") / library
    if not path.exists():
        pytest.skip(f"no {path}: apt-get install libjemalloc2 libtcmalloc-minimal4")
    environ = {"LD_PRELOAD": str(path), "PYTHONMALLOC": python}
    plain, sealed = fragmented("off", **environ), fragmented("on", **environ)
    (left,) = sealed["sealed"]["unsealed"]
    assert left.startswith("the C heap: kept by another allocator")
    assert (sealed["sealed"]["holes"] > 5000) is (python == "pymalloc")
    assert sealed["private"] < plain["private"] + (1 << 20)


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="3.10 numbers types anew when it is emptied"
)
def test_names_of_single_lookups_leave_holes_between_inherited_objects() -> None:
    """A type's cache of lookups lets a name go when another takes its place."""
    code = (
        "import os, cowpreload\n"
        "from cowpreload import _core\n"
        "kinds = [type('Kind', (), {}) for _ in range(8)]\n"
        "def look_up(names):\n"
        "    for i, name in enumerate(names): getattr(kinds[i % 8], name, None)\n"
        "names = [f'a_name_to_look_up_{i}' for i in range(100_000)]\n"
        "look_up(names[::19])\n"
        "del names[::19]\n"
        "cowpreload.freeze()\n"
        "if not os.fork():\n"
        "    before = _core.take_reading().private\n"
        "    look_up(f'another_name_{i}' for i in range(20_000))\n"
        "    print(_core.take_reading().private - before, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert int(run("-c", code, check=True).stdout) < 600_000


@pytest.mark.parametrize(
    "malloc",
    [
        "debug",
        pytest.param(
            "mimalloc",
            marks=pytest.mark.skipif(sys.version_info < (3, 13), reason="not built in"),
        ),
    ],
)
def test_an_allocator_that_is_not_pymalloc_is_left_alone(malloc: str) -> None:
    found = fragmented("on", PYTHONMALLOC=malloc)
    (left,) = found["sealed"]["unsealed"]
    assert left.startswith("Python's objects: kept by another allocator")
    assert found["private"] < found["young"] * 4


def test_an_allocator_that_never_comes_to_fresh_memory_does_not_fill_for_ever(
    tmp_path: Path,
) -> None:
    """It passes for pymalloc, and gives each block from another pool."""
    library = tmp_path / "scattering.so"
    command = ["cc", "-shared", "-fPIC", f"-I{sysconfig.get_paths()['include']}"]
    command += ["tests/programs/scattering.c", "-o", str(library)]
    subprocess.run(command, check=True)
    code = (
        "import ctypes, sys\n"
        "from cowpreload import _core\n"
        "scatter = ctypes.PyDLL(sys.argv[1]).scatter\n"
        "scatter(1)\n"
        "report = _core.seal()\n"
        "print(scatter(0), *report.unsealed)"
    )
    count, left = run("-c", code, str(library), check=True).stdout.split(maxsplit=1)
    assert left.startswith("Python's objects: kept by another allocator")
    # As many as the process has pages, and some that the interpreter itself takes.
    assert 1000 < int(count) < 100_000


def test_a_second_seal_fills_what_has_come_since() -> None:
    code = (
        "from cowpreload import sealing\n"
        "held = [bytes(300) for _ in range(2000)] + [bytes(9000) for _ in range(50)]\n"
        "sealing.seal()\n"
        "sealing.seal()\n"  # what the first call itself has freed
        "again = sealing.seal()\n"
        "del held[::2]\n"
        "second = sealing.seal()\n"
        "print(again.holes, second.holes, second.bytes)"
    )
    done = run("-c", code, check=True)
    again, second, size = map(int, done.stdout.split())
    assert again < 100
    assert second >= 1025
    assert size >= 1000 * 300 + 25 * 9000


def test_freezing_before_each_fork_does_not_keep_more_memory_each_time() -> None:
    code = (
        "import os, cowpreload\n"
        "def churn():\n"
        "    held = [bytes(300) for _ in range(9999)]\n"
        "    del held[::2]\n"
        "    return held, cowpreload.freeze().sealed\n"
        "kept, first = churn()\n"
        "more, second = churn()\n"
        "print(first.holes, second.holes, second.unsealed, flush=True)\n"
        "if not os.fork():\n"  # whose own children it may be called for
        "    print(churn()[1].holes, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    here, child = run("-c", code, check=True).stdout.splitlines()
    first, second, why = here.split(maxsplit=2)
    assert int(first) > 4000
    assert int(second) == 0
    assert why == "('filled by the first call in this process; call freeze() once',)"
    assert int(child) > 4000
