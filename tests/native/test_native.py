"""The native core under the sanitizers: without Python, and walking its heap."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import once

from cowpreload import _core
from cowpreload.native.build import SOURCES

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NATIVE = ROOT / "cowpreload" / "native"
SANITIZERS = ("address,undefined", "thread")
# Where there are wheels of it: arrays of objects, their views, records.
ARRAYS = (
    "import numpy as np\n"
    "array = np.array([f'{i} a' for i in range(9999)], dtype=object)\n"
    "views = [array[::-3], array.reshape(3, -1).T, np.array('a' * 9, dtype=object)]\n"
    "empty = [np.empty(9, dtype=object), np.empty((3, 0), dtype=object)]\n"
    "records = np.zeros(99, dtype=[('b', 'i1'), ('a', 'O', (2, 3)), ('d', 'M8[s]')])\n"
    "records['a'] = [[[str(i) * 9] * 3] * 2 for i in range(99)]\n"
    "scalars = list(records)\n"
    if find_spec("numpy")
    else ""
)


def compiler() -> str:
    return shutil.which("cc") or "gcc"


def supports(sanitizer: str, directory: Path) -> bool:
    """Whether this compiler has the sanitizer's runtime."""
    source = directory / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    command = [compiler(), f"-fsanitize={sanitizer}", str(source), "-o"]
    done = subprocess.run([*command, str(directory / "empty")], capture_output=True)
    return done.returncode == 0


def compile_with(sanitizer: str) -> list[str]:
    command = [compiler(), "-std=gnu11", "-g", "-O0", "-Wall", "-Wextra", "-Werror"]
    command += [f"-fsanitize={sanitizer}", "-fno-omit-frame-pointer", f"-I{NATIVE}"]
    command += ["-DCOW_STILL_ATTEND_MS=1000u"]
    return command


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of the core's objects for a sanitizer, compiled once a session."""

    def objects(sanitizer: str) -> Path:
        def build(directory: Path) -> None:
            command = [*compile_with(sanitizer), "-c"]
            command += [str(NATIVE / source) for source in SOURCES]
            subprocess.run(command, cwd=directory, check=True)

        return once(tmp_path_factory, f"core-{sanitizer.partition(',')[0]}", build)

    return objects


@pytest.mark.parametrize("name", ["test_core", "test_pointers", "test_still"])
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_the_core_is_clean_under_the_sanitizers(
    tmp_path: Path, core: Callable[[str], Path], sanitizer: str, name: str
) -> None:
    """Threads, tickets of many processes, texts cut at every byte; still copies."""
    if not supports(sanitizer, tmp_path):
        pytest.skip(f"{compiler()} has no -fsanitize={sanitizer}: install libgcc's")
    program = tmp_path / name
    objects = core(sanitizer).glob("*.o")
    command = [*compile_with(sanitizer), str(HERE / f"{name}.c"), *map(str, objects)]
    subprocess.run([*command, "-o", str(program), "-pthread"], check=True)
    # A child that has its parent's memory is no thread and no process to it: gcc 16's
    # runtime ends both, and gcc 12's once took what it does for races of its parent.
    without = {"WITHOUT_CLONE": "1"} if sanitizer == "thread" else {}
    # Each end of a process waits for a second, for races of threads that live on.
    without |= {"TSAN_OPTIONS": "atexit_sleep_ms=100"} if without else {}
    done = subprocess.run(
        [program],
        env={**os.environ, **without},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("done\n")
    assert "Sanitizer" not in done.stderr


FUZZERS = sorted(set(HERE.glob("fuzz_*.c")) - {HERE / "fuzz_main.c"})
FOUND = sorted({each.name.partition("-")[0] for each in (HERE / "found").iterdir()})


@pytest.mark.parametrize("name", FOUND)
def test_what_the_fuzzers_found_stays_mended(tmp_path: Path, name: str) -> None:
    """By `make test-deep`, which needs clang; the very inputs need none."""
    program = tmp_path / name
    command = [compiler(), "-std=gnu11", f"-I{NATIVE}", str(HERE / "fuzz_main.c")]
    command += [str(HERE / f"fuzz_{name}.c"), *linked(HERE / f"fuzz_{name}.c")]
    subprocess.run([*command, "-o", str(program)], check=True)
    inputs = sorted(map(str, (HERE / "found").glob(f"{name}-*")))
    done = subprocess.run(
        [program, *inputs], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == inputs


def linked(fuzzer: Path) -> list[str]:
    """What it says that it is linked with; tools/deep/fuzz.py reads the same line."""
    said = re.search(r"^ \* Links: (.*)$", fuzzer.read_text(), re.MULTILINE)
    return [str(NATIVE / each) for each in said[1].split()] if said else []


def test_the_fuzzers_compile_with_the_core_as_it_is() -> None:
    """They run in a release alone: a struct that changed was noticed there."""
    command = [*compile_with(SANITIZERS[0]), "-fsyntax-only"]
    subprocess.run([*command, *map(str, FUZZERS)], check=True)


@pytest.mark.parametrize("kib", [50, 60, 256])
def test_a_worker_with_large_thread_local_storage_is_watched(
    tmp_path: Path, kib: int
) -> None:
    """It is taken from each thread's stack: 64 KiB failed, or left too little."""
    source, library = tmp_path / "big.c", tmp_path / "big.so"
    source.write_text(f"__thread char big[{kib} * 1024] = {{1}};\n")
    build = [compiler(), "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(build, check=True)
    code = (
        "import time\n"
        "from cowpreload import watch\n"
        "from cowpreload.board import Board\n"
        "from cowpreload.records import Limits\n"
        "board = Board.create()\n"
        "watched = watch.start(board, board.reserve(), Limits(), watch.Host())\n"
        "watched.ready(0)\n"
        "memory, end = board.raw.slot[0].memory, time.monotonic() + 20\n"
        "while not memory.seen_at_ms and time.monotonic() < end: time.sleep(0.01)\n"
        "print(memory.seen_at_ms > 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.skipif(bool(_core.immortal_why_not()), reason=_core.immortal_why_not())
def test_the_walk_reads_no_byte_that_is_not_an_objects(tmp_path: Path) -> None:
    """The sanitizer's extension over a heap of malloc's, whose ends it knows."""
    if not supports("address", tmp_path):
        pytest.skip(f"{compiler()} has no -fsanitize=address: install libgcc's")
    binaries = shutil.ignore_patterns("*.so")
    shutil.copytree(ROOT / "cowpreload", tmp_path / "cowpreload", ignore=binaries)
    build = [sys.executable, "setup.py", "--quiet", "build_ext"]
    build += ["--build-lib", str(tmp_path), "--build-temp", str(tmp_path / "temporary")]
    subprocess.run(
        build,
        cwd=ROOT,
        env={**os.environ, "COW_SANITIZE": "address", "CFLAGS": "-O0"},
        check=True,
    )
    asked = [compiler(), "-print-file-name=libasan.so"]
    runtime = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    environ = {
        **os.environ,
        "LD_PRELOAD": runtime.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(tmp_path),
    }
    code = (
        "import asyncio, datetime, decimal, sqlite3, django.contrib.admin, os\n"
        "from cowpreload import _core, freezing\n"
        "held = [(str(i), {f'{i} é': [i]}, frozenset([f'{i}'])) for i in range(9999)]\n"
        "zones = [datetime.timezone(datetime.timedelta(hours=1)) for _ in held]\n"
        "times = [datetime.datetime(1, 1, 1, tzinfo=zone) for zone in zones]\n"
        "ranges = [range(each, each << 70) for each in range(9999)]\n"
        f"{ARRAYS}"
        "walk = lambda *what: _core.immortalize(*what, fill=7)\n"
        "done = freezing.freeze(walk).immortal\n"
        "print(_core.__file__, done.fault == '', done.objects > 60000, flush=True)\n"
        "os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}/cowpreload/_core.py True True\n"
