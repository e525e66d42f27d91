"""What is published: the source distribution, and the wheel that is made of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from conftest import HOMEPAGE, PYPY, ROOT, deep
from harness.processes import script
from test_bench import check_cpu

# The first that ignores the import line of a .pth.
NEEDS_START = sys.version_info >= (3, 18)
# What the extras of the wheel would install; the tests' own environment has it.
EXTRAS = ("cffi", "gunicorn", "uwsgi", "django", "asgiref", "sqlparse", "packaging")


def names_of_source(built: Path) -> set[str]:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = archive.getnames()
    return {name.partition("/")[2] for name in names}


def names_of_wheel(built: Path) -> set[str]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def metadata(built: Path) -> Message:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_source_distribution_holds_all_that_the_checkout_does(built: Path) -> None:
    """Tests, docs and the changelog: who packages it runs and ships them."""
    found = names_of_source(built)
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no git checkout to compare with")
    done = run("git", "ls-files", directory=ROOT)
    there = {name for name in done.split("\n") if (ROOT / name).is_file()}
    assert there - found == {".gitignore"}
    assert not [name for name in found if name.endswith((".so", ".pyc", ".sqlite3"))]


def test_a_build_without_a_compiler_says_so_in_one_line(tmp_path: Path) -> None:
    """The compiler's own failure is a page, of which this is the last line."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext"]
    command += ["--build-temp", str(tmp_path), "--build-lib", str(tmp_path)]
    environ = {**os.environ, "CC": "no-such-cc"}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "cowpreload: CC=no-such-cc: no C compiler; "
        "install them, as in apt-get install gcc"
    )


def test_the_wheel_holds_what_runs_and_nothing_else(built: Path) -> None:
    """What an editable install cannot show."""
    found = names_of_wheel(built)
    assert {"cowpreload.pth", "_cowpreload_startup.py"} <= found
    assert "cowpreload/py.typed" in found
    assert ("cowpreload.start" in found) is NEEDS_START
    assert {"cowpreload/plugin/plugin.c", "cowpreload/native/cow.h"} <= found
    assert "cowpreload/examples/django_app/manage.py" in found
    assert not [name for name in found if name.startswith(("tests", "tools", "ex"))]
    assert not [name for name in found if "measure" in name or "start-up" in name]


def test_the_metadata_names_the_homepage_that_the_build_was_told(built: Path) -> None:
    found = metadata(built).get_all("Project-URL")
    assert found == [f"Homepage, {HOMEPAGE}", f"Source, {HOMEPAGE}"]


def test_the_readme_of_the_metadata_needs_no_checkout(built: Path) -> None:
    """Of an index's page: a relative link leads nowhere, a picture is not there."""
    text = metadata(built).get_payload()
    assert isinstance(text, str)
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    named = set(re.findall(r"\(`([^`]*)`\)", text))
    assert {"docs/settings.md", "docs/figures/scale-3.13.png"} <= named
    assert "in the source distribution" in text
    assert named <= names_of_source(built)


def run(*command: str | Path, directory: Path) -> str:
    """One step; what it printed is in the failure."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def lend(directory: Path) -> None:
    """Give the environment what the extras would: uWSGI alone compiles for 25 s."""
    ours = Path(sysconfig.get_paths()["platlib"])
    (theirs,) = directory.glob("lib/python*/site-packages")
    for pattern in (*EXTRAS, *(f"{name}-*" for name in EXTRAS), "_cffi*", "pycparser*"):
        for path in ours.glob(pattern):
            (theirs / path.name).symlink_to(path)
    (directory / "bin" / "uwsgi").symlink_to(script("uwsgi"))


@pytest.mark.skipif(PYPY, reason="the bench runs on CPython")
@pytest.mark.parametrize(
    ("extras", "scenario"),
    [(False, "caches"), *deep((False, "cpu"), (True, "scale"))],
    ids=["lent", "lent-both", "pip"],
)
def test_the_bench_runs_from_the_wheel_alone(
    built: Path, tmp_path: Path, extras: bool, scenario: str
) -> None:
    """In an empty environment, outside the checkout."""
    make = (sys.executable, "-m", "venv", "--without-pip", "fresh")
    run(*make, directory=tmp_path)
    scripts = tmp_path / "fresh" / "bin"
    (wheel,) = built.glob("*.whl")
    # Without `plot`: the bench then says so and goes on.
    what = (
        [f"{wheel}[gunicorn,uwsgi,django]"]
        if extras
        else ["--no-deps", "--no-compile", str(wheel)]
    )
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python")
    run(*pip, "install", "--quiet", *what, directory=tmp_path)
    if not extras:
        lend(tmp_path / "fresh")
    command = (scripts / "cowpreload", "bench", scenario, "--tiny")
    said = run(*command, directory=tmp_path)
    assert scenario == "caches" or "building the uWSGI plugin" in said
    assert said.count("no plots: matplotlib is not installed") == 1
    (result,) = (tmp_path / "cowpreload-bench").glob(f"{scenario}-*.json")
    figures = json.loads(result.read_text())
    assert figures["complete"]
    if scenario == "cpu":
        check_cpu(figures, said, "tiny")
    if scenario != "scale":
        return
    for found in figures["heaps"]["5"].values():
        assert 0 < found["cost"]["mib_a_worker"] < 60
        assert found["workers"]["2"]["summary"]["private"]["n"] == 2
