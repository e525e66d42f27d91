"""An environment for a PyPy: gunicorn, Django, and this package compiled for it.

Takes the path of a PyPy; gives an interpreter and the variables to start it with, in
a temporary folder. The package is copied, not installed: Debian's PyPy may be older
than what pip would allow, and a wheel holds no sources for it. PyPy brings cffi.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import cowpreload
from cowpreload.errors import CowError


class NoPyPyError(CowError):
    """There is no PyPy, or no environment could be made for it."""


@dataclass(frozen=True)
class PyPy:
    """What gunicorn is started with.

    Attributes:
        python: the interpreter of the environment.
        path: PYTHONPATH that holds this package.
        version: of PyPy, Python, Django and gunicorn.
    """

    python: str
    path: Path
    version: dict[str, str]


_VERSIONS = (
    "import sys, platform, django, gunicorn;"
    "print('.'.join(map(str, sys.pypy_version_info[:3])), platform.python_version(),"
    " django.__version__, gunicorn.__version__)"
)


def find(given: str | None) -> str:
    """The path of a PyPy.

    Raises:
        NoPyPyError: there is none.
    """
    if given == "none":
        raise NoPyPyError("as asked for by --pypy none")
    found = shutil.which(given or "pypy3")
    if not found:
        raise NoPyPyError(
            f"pypy={given or 'pypy3'}: no such command; install one, as in "
            "apt-get install pypy3 pypy3-dev pypy3-venv, or give --pypy PATH"
        )
    return found


def _run(*command: str | Path, directory: Path) -> str:
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    if done.returncode:
        last = done.stdout.strip().splitlines()[-1:] or ["no output"]
        raise NoPyPyError(f"{command[0]} {command[1]}: failed: {last[0]}")
    return done.stdout


def prepare(pypy: str, directory: Path) -> PyPy:
    """Make the environment, about 15 s.

    Raises:
        NoPyPyError: a step failed; which one, and the last line it printed.
    """
    home, copy = directory / "pypy", directory / "pypy-path"
    _run(pypy, "-m", "venv", home, directory=directory)
    python = home / "bin" / "python"
    _run(
        python, "-m", "pip", "install", "-q", "gunicorn", "django", directory=directory
    )
    shutil.copytree(
        Path(cowpreload.__file__).parent,
        copy / "cowpreload",
        ignore=shutil.ignore_patterns("*.so", "__pycache__", "examples", "_cow.c"),
    )
    _run(python, copy / "cowpreload" / "native" / "build.py", directory=copy)
    names = ("pypy", "python", "django", "gunicorn")
    found = _run(python, "-c", _VERSIONS, directory=directory).split()
    return PyPy(str(python), copy, dict(zip(names, found, strict=True)))
