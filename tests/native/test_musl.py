"""The native core on musl, the C library of Alpine: it compiles, links and runs.

Needs musl-gcc: apt-get install musl-tools. The kernel's headers, which musl brings
none of, are those of the ordinary compiler.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PYPY, once

from cowpreload.native.build import FLAGS, SOURCES

HERE = Path(__file__).parent
NATIVE = HERE.parent.parent / "cowpreload" / "native"
COMPILER = shutil.which("musl-gcc")

pytestmark = pytest.mark.skipif(not COMPILER, reason="apt-get install musl-tools")


def kernel_headers(directory: Path) -> None:
    """Link the folders of the kernel's headers, and of no others, into `directory`."""
    asked = subprocess.run(
        ["cc", "-M", "-x", "c", "-"],
        input="#include <linux/futex.h>\n#include <asm/unistd.h>\n",
        capture_output=True,
        text=True,
        check=True,
    )
    for path in map(
        Path, re.findall(r"\S+/(?:linux|asm|asm-generic)/\S+", asked.stdout)
    ):
        folder = path.parent
        if not (directory / folder.name).exists():
            (directory / folder.name).symlink_to(folder)


@pytest.fixture(scope="session")
def musl(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """The compiler as a function of its arguments; gives what the linker said."""
    headers = once(tmp_path_factory, "kernel-headers", kernel_headers)

    def compile_(*arguments: str | Path) -> str:
        command = [COMPILER or "", *FLAGS, "-Werror", "-O0", "-idirafter", headers]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    return compile_


@pytest.mark.skipif(PYPY, reason="Python's headers are CPython's")
def test_every_function_that_the_extensions_call_is_in_musl(
    musl: Callable[..., str], tmp_path: Path
) -> None:
    """malloc_trim() was not: no compile with newer compilers, no import with older."""
    sources = [NATIVE / name for name in (*SOURCES, "offsets.c")]
    link = ["-shared", "-fPIC", "-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"]
    python = sysconfig.get_paths()["include"]
    said = musl(
        "-DCOW_CPYTHON=1",
        *("-idirafter", python),
        *(*sources, *link, "-o", tmp_path / "core.so"),
    )
    missing = set(re.findall(r"undefined reference to [`'](\w+)'", said))
    assert "PyGILState_Ensure" in missing  # no Python is linked: its own are
    assert [name for name in missing if not re.match("_?Py", name)] == []


@pytest.mark.parametrize("name", ["test_core", "test_pointers"])
def test_the_core_works_on_musl(
    musl: Callable[..., str], tmp_path: Path, name: str
) -> None:
    """Threads, stacks, the board, readings: as on glibc."""
    sources = [NATIVE / each for each in SOURCES]
    program = tmp_path / name
    musl("-static", f"-I{NATIVE}", HERE / f"{name}.c", *sources, "-o", program)
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("done\n")
