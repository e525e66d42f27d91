"""What every test may ask for: servers that are ended, logs that are shown."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from fault_table import (  # noqa: F401 - hooks and a fixture, and what tests ask for
    full,
    make_faults,
    pytest_addoption,
    pytest_terminal_summary,
)
from harness import server as harness
from harness.processes import script, wait_until
from harness.server import Server
from made_once import (  # noqa: F401 - fixtures, and what tests ask of this file
    HOMEPAGE,
    NO_UWSGI,
    PYPY,
    ROOT,
    SITE,
    make_built,
    make_gunicorn23,
    make_plugin_directory,
    make_shop_directory,
    once,
)
from services import (  # noqa: F401 - fixtures
    start_postgres,
    start_redis,
    start_tls,
)

from cowpreload.board import open_board

TESTS = Path(__file__).parent
PROGRAMS = TESTS / "programs"

# What the interpreter's version can change: all in these, and what is marked.
EACH_PYTHON = {
    TESTS / name
    for name in (
        "unit",
        "native",
        "integration/test_django.py",
        "integration/test_executors.py",
        "integration/test_gevent.py",
        "integration/test_immortality.py",
        "integration/test_startup.py",
        "integration/test_system_exit.py",
        "integration/test_unwritten.py",
        "integration/test_why_causes.py",
    )
}


def deep(*values: object) -> list[ParameterSet]:
    """Parameters of `make test-deep` alone; several are a tuple."""
    cases = [each if isinstance(each, tuple) else (each,) for each in values]
    return [pytest.param(*each, marks=pytest.mark.deep) for each in cases]


needs_uwsgi = pytest.mark.skipif(PYPY, reason=NO_UWSGI)

# Fast enough for a test, slow enough to be seen.
QUICK = {
    "cow-check-interval": "0.1",
    "cow-min-lifetime": "0",
    "cow-jitter": "0",
    "cow-strikes": "1",
}


# gunicorn's worker classes beside `cow`, and what each needs.
CLASSES = {"asgi": "cow_asgi", "gevent": "cow_gevent", "uvicorn": "cow_uvicorn"}
_NEEDED = {"asgi": "gunicorn", "gevent": "gevent", "uvicorn": "uvicorn_worker"}


def require_class(host: str) -> None:
    """Skip where this interpreter has no package for the class."""
    if find_spec(_NEEDED[host]) is None:
        pytest.skip(f"no {_NEEDED[host]} beside this interpreter")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """What `make fuzz` asks for: hypothesis loads a profile after this."""
    if config.getoption("--hypothesis-profile", "") == "deep":
        from hypothesis import settings

        settings.register_profile("deep", max_examples=2000, deadline=None)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say what is missing at once, instead of failing a hundred times."""
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.exit("no /proc/self/smaps_rollup: the tests need Linux 4.14 or newer")
    if not PYPY and not os.access(script("uwsgi"), os.X_OK):
        pytest.exit("no uwsgi beside this interpreter: run `make test`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs on every interpreter."""
    gone = [path for path in EACH_PYTHON if not path.exists()]
    assert not gone, f"renamed? {gone}"

    @cache
    def marked(path: Path) -> bool:
        return not {path, *path.parents}.isdisjoint(EACH_PYTHON)

    for item in items:
        if marked(item.path):
            item.add_marker("each_python")


class Servers:
    """Starts servers for one test and ends them after it."""

    def __init__(
        self,
        directory: Path,
        plugins: Callable[[], Path],
        shop: Callable[[], Path],
    ) -> None:
        self.directory = directory
        self.plugins = plugins
        self._shop = shop
        self.running: list[Server] = []

    def _add(self, server: Server) -> Server:
        self.running.append(server)
        return server

    def _log(self) -> Path:
        return self.directory / f"server-{len(self.running)}.log"

    def database(self) -> Path:
        """A filled database for the shop."""
        return Path(shutil.copy(self._shop() / "shop.sqlite3", self.directory))

    def gunicorn(
        self,
        *arguments: str,
        app: str = "app",
        directory: Path = PROGRAMS,
        environ: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
    ) -> Server:
        """gunicorn with these arguments; `app` is the application."""
        return self._add(
            harness.gunicorn(
                [*arguments, app],
                directory,
                self._log(),
                environ,
                launcher=launcher,
            )
        )

    def uwsgi(
        self,
        ini: Mapping[str, str | Sequence[str]] | None = None,
        *,
        app: str | None = "app",
        directory: Path = PROGRAMS,
        environ: Mapping[str, str] | None = None,
        plugin: bool = True,
        binary: str | None = None,
        launcher: Sequence[str] = (),
    ) -> Server:
        """uWSGI with these keys; with our plugin unless told otherwise."""
        if PYPY:
            pytest.skip(NO_UWSGI)
        module = {"module": app} if app else {}
        return self._add(
            harness.uwsgi(
                {"need-app": "true", **module, **(ini or {})},
                directory,
                self._log(),
                environ,
                plugins=self.plugins() if plugin else None,
                binary=binary,
                launcher=launcher,
            )
        )

    def on(
        self,
        host: str,
        options: Mapping[str, str] | None = None,
        *,
        workers: int = 2,
        environ: Mapping[str, str] | None = None,
        app: str = "app",
        launcher: Sequence[str] = (),
    ) -> Server:
        """The same server on "sync", "threaded", "uwsgi" or a name of CLASSES."""
        options = options or {}
        if host.startswith("uwsgi"):
            threads = {"threads": "3"} if host == "uwsgi-threaded" else {}
            ini = {"processes": str(workers), "forkbomb-delay": "0", **threads}
            return self.uwsgi(
                {**ini, **options}, app=app, environ=environ, launcher=launcher
            )
        flags = [part for key, value in options.items() for part in (f"--{key}", value)]
        if host == "threaded":
            flags += ["--threads", "3"]
        if host in CLASSES:
            require_class(host)
        if host in ("asgi", "uvicorn"):
            app = f"{app}:asgi"
        flags += ["--worker-class", CLASSES.get(host, "cow"), "--workers", str(workers)]
        return self.gunicorn(*flags, app=app, environ=environ, launcher=launcher)


def ready(server: Server, workers: int = 1) -> Server:
    """Return when this many workers are ready, on the board.

    A signal that comes earlier meets a worker that has not set its handlers yet; both
    hosts lose it then, with and without us.
    """
    server.wait_serving(workers=workers)
    board = open_board(server.pid)
    wait_until(
        lambda: [each.state for each in board].count("ready") >= workers, 20, "ready"
    )
    return server


@pytest.fixture
def servers(
    tmp_path: Path,
    plugin_directory: Callable[[], Path],
    shop_directory: Callable[[], Path],
) -> Iterator[Servers]:
    """Servers of this test; what they wrote is shown if it fails."""
    with ended(Servers(tmp_path, plugin_directory, shop_directory)) as started:
        yield started


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory,
    plugin_directory: Callable[[], Path],
    shop_directory: Callable[[], Path],
) -> Iterator[Servers]:
    """Servers of a whole file, for questions that do not disturb one another."""
    directory = tmp_path_factory.mktemp("shared")
    with ended(Servers(directory, plugin_directory, shop_directory)) as started:
        yield started


@contextlib.contextmanager
def ended(started: Servers) -> Iterator[Servers]:
    """Kill them all at last.

    No test looks at an end that comes after it: a second of each server's, in all
    minutes. One that matters is asked for: signal and wait_exit, or stop.
    """
    try:
        yield started
    finally:
        for each in started.running:
            each.kill()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: object) -> Iterator[None]:
    """Add each server's log to a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        given = getattr(item, "funcargs", {}).values()
        for started in (each for each in given if isinstance(each, Servers)):
            for server in started.running:
                report.sections.append((f"log of {server.log_path.name}", server.shown))


def run(*command: str, **options: object) -> subprocess.CompletedProcess[str]:
    """One short program of a test, with its output."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=60,
        **options,  # type: ignore[call-overload]
    )
