"""An install whose part for `why` does not compile: it serves, and `why` says it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PYPY, Servers, ready

from cowpreload import _offsets

ROOT = Path(__file__).parent.parent.parent
PARTS = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
FOLDERS = ("cowpreload", "plugin", "examples")

pytestmark = pytest.mark.skipif(PYPY, reason="it has no internal headers of CPython's")


def install(directory: Path) -> Path:
    """Install from the sources where an internal header is an error; where to."""
    source, target, broken = (directory / name for name in ("source", "lib", "broken"))
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("*.so", "_*.c", "__pycache__", "*.sqlite3*")
        shutil.copytree(ROOT / folder, source / folder, ignore=ignored)
    for part in PARTS:
        shutil.copy(ROOT / part, source)
    header = broken / "internal" / "pycore_interp.h"
    header.parent.mkdir(parents=True)
    header.write_text('#error "this Python has other internal headers"\n')
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
    ]
    pip += ["--no-build-isolation", "--target", str(target), str(source)]
    done = subprocess.run(
        pip,
        env={**os.environ, "CFLAGS": f"-O0 -I{broken}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.mark.skipif(_offsets.own() is None, reason="no internal header is used here")
@pytest.mark.deep  # it builds the package once more
def test_a_broken_internal_header_costs_only_the_names_in_why(
    servers: Servers, tmp_path: Path
) -> None:
    library = install(tmp_path)
    built = {path.name.partition(".")[0] for path in library.rglob("native/*.so")}
    assert built == {"_cow"}
    environ = {"PYTHONPATH": str(library)}
    server = ready(servers.on("sync", workers=1, environ=environ))
    worker = server.workers()[0]
    assert (
        f" {library}/cowpreload/native/_cow."
        in Path(f"/proc/{worker}/maps").read_text()
    )
    command = [sys.executable, "-m", "cowpreload", "why", str(worker)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "page maps alone: cowpreload.native._offsets was not built" in said
    assert "all private pages" in said
