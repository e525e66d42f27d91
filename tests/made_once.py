"""What a session makes once, however many processes of pytest-xdist it has.

Gives fixtures to conftest.py: the first test that asks for one makes it, the others
wait.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.processes import script

ROOT = Path(__file__).parent.parent
SITE = ROOT / "examples" / "django_app"
PYPY = sys.implementation.name == "pypy"
NO_UWSGI = "uWSGI's Python plugin, and ours, embed CPython"
HOMEPAGE = "https://cowpreload.example/of/tests"  # in the wheel that `built` makes


def once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """The directory that `make` fills, once a session; the others wait for it."""
    session = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent  # each process has a directory of its own in there
    made = session / name
    with open(session / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            making = session / f"{name}.making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make(making)
            making.rename(made)
    return made


@pytest.fixture(scope="session", name="plugin_directory")
def make_plugin_directory(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[], Path]:
    """Build the uWSGI plugin when the first test asks for it.

    What the command said is beside it, in `printed` and `said`.
    """

    def build(output: Path) -> None:
        command = [script("cowpreload"), "plugin", "build", "--output", str(output)]
        with (output / "printed").open("w") as on, (output / "said").open("w") as said:
            subprocess.run(command, check=True, stdout=on, stderr=said)

    def directory() -> Path:
        if PYPY:
            pytest.skip(NO_UWSGI)
        return once(tmp_path_factory, "plugins", build)

    return directory


@pytest.fixture(scope="session", name="shop_directory")
def make_shop_directory(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Fill a database for the shop when the first test asks for one."""

    def seed(directory: Path) -> None:
        environ = {**os.environ, "SHOP_DB": str(directory / "shop.sqlite3")}
        command = [sys.executable, "manage.py", "seed"]
        quiet = subprocess.DEVNULL
        subprocess.run(command, cwd=SITE, env=environ, check=True, stdout=quiet)

    return lambda: once(tmp_path_factory, "shop", seed)


@pytest.fixture(scope="session", name="gunicorn23")
def make_gunicorn23(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for PYTHONPATH with the gunicorn that many still run."""

    def install(directory: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--target", str(directory), "gunicorn==23.0.0"]
        subprocess.run(command, check=True, timeout=300)

    return once(tmp_path_factory, "gunicorn23", install)


@pytest.fixture(scope="session", name="built")
def make_built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the source distribution, and the wheel that was made of it."""

    def build(directory: Path) -> None:
        make = "import sys; from setuptools.build_meta import build_sdist as make;"
        code = f"{make} make({str(directory)!r})"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, **quiet)
        (source,) = directory.glob("*.tar.gz")
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        pip += ["--no-build-isolation", "--wheel-dir", str(directory), str(source)]
        # Not a figure of it is read: what the compiler would gain, the tests lose.
        environ = {**os.environ, "CFLAGS": "-O0"}
        environ["COWPRELOAD_HOMEPAGE"] = HOMEPAGE
        subprocess.run(pip, check=True, timeout=600, env=environ)

    return once(tmp_path_factory, "built", build)
