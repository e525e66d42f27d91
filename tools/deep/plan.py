"""What is run: CPython's files, Django's apps, and where Django's tests come from.

Takes an interpreter's environment; gives jobs. Downloads stay in build/deep.
"""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEEP = ROOT / "build" / "deep"
PROGRAMS = ROOT / "tests" / "deep"

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Job:
    """One process pair."""

    suite: str
    name: str
    program: Path
    arguments: tuple[str, ...]
    limit: float  # seconds, for each of the two


def listed(name: str) -> list[str]:
    """The lines of a list beside this file, without its comments."""
    lines = (HERE / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def cpython_jobs(files: Sequence[str], warm: bool) -> list[Job]:
    program = PROGRAMS / "cpython_file.py"
    more = ("warm",) if warm else ()
    return [
        Job("cpython", names.split(",")[0], program, (names, *more), 600)
        for names in files
    ]


def django_jobs(python: str) -> list[Job]:
    """All apps in one pair: the more is loaded before the fork, the more can break."""
    tests = django_tests(python)
    program, apps = PROGRAMS / "django_apps.py", ",".join(listed("django.txt"))
    return [Job("django", "apps", program, (str(tests), apps), 2400)]


def django_tests(python: str) -> Path:
    """The tests folder of the source distribution of the installed Django."""
    ask = [python, "-c", "import django; print(django.get_version())"]
    version = subprocess.check_output(ask, text=True).strip()
    tests = DEEP / f"django-{version}" / "tests"
    if not tests.exists():
        DEEP.mkdir(parents=True, exist_ok=True)
        download = [python, "-m", "pip", "download", "--quiet", "--no-deps"]
        download += ["--no-build-isolation", "--no-binary", "django"]
        subprocess.check_call([*download, "-d", str(DEEP), f"django=={version}"])
        [archive] = DEEP.glob(f"[dD]jango-{version}.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(DEEP, filter="tar")
    return tests
