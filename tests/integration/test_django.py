"""Django is closed unasked where it is configured, in every version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROGRAMS, Servers, once, run

BOTH = ["sync", "uwsgi"]
# The oldest that is supported, where this interpreter still has what it imports (cgi,
# distutils), and the newest that this interpreter takes.
OLD = sys.version_info < (3, 12)
VERSIONS = ["3.2", "5"] if OLD else ["6"]


@pytest.fixture(scope="session")
def django_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A directory for PYTHONPATH with this Django."""

    def directory(version: str) -> Path:
        def install(directory: Path) -> None:
            command = [sys.executable, "-m", "pip", "install", "--quiet"]
            command += ["--disable-pip-version-check", "--target", str(directory)]
            # Most of it is never imported.
            command += ["--no-compile", f"django=={version}.*"]
            subprocess.run(command, check=True, timeout=300)

        return once(tmp_path_factory, f"django-{version}", install)

    return directory


@pytest.mark.parametrize("host", BOTH)
def test_django_imported_and_not_configured_does_not_end_the_start(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, {"cow-warmup": "/"}, app="unconfigured")
    assert server.wait_serving().get("/") == (200, b"ok")
    assert "cow: closing" not in server.log


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("host", BOTH)
def test_connections_and_caches_of_the_warm_up_are_closed(
    servers: Servers,
    host: str,
    version: str,
    tmp_path: Path,
    django_of: Callable[[str], Path],
) -> None:
    log = tmp_path / "exit"
    environ = {
        "PYTHONPATH": str(django_of(version)),
        "SITE_DB": str(tmp_path / "site.sqlite3"),
        "EXIT_LOG": str(log),
        # Django 3.2 on 3.11: what it uses is deprecated there.
        "PYTHONWARNINGS": "ignore",
    }
    server = servers.on(host, {"cow-warmup": "/"}, app="django_site", environ=environ)
    found = json.loads(server.wait_serving().get("/")[1])
    assert ".".join(map(str, found["version"])).startswith(version)
    assert not found["inherited"]
    assert f"{server.pid} fork" in log.read_text().splitlines()
    assert f"{server.pid} request" in log.read_text().splitlines()
    assert "findings=0" in server.wait_log("cow: preload")


@pytest.mark.parametrize("host", BOTH)
def test_a_cache_that_does_not_close_is_said_and_the_start_goes_on(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    environ = {
        "SITE_DB": str(tmp_path / "site.sqlite3"),
        "EXIT_LOG": str(tmp_path / "exit"),
        "CACHE": "raise",
    }
    server = servers.on(host, {"cow-warmup": "/"}, app="django_site", environ=environ)
    server.wait_serving()
    server.wait_log("cow: closing Django's caches: raised OSError: the cache does not")
    assert server.log.count("cow: closing") == 1
    assert "Traceback" in server.log


@pytest.mark.parametrize("version", VERSIONS)
def test_the_session_of_a_user_is_one_in_every_version(
    version: str, tmp_path: Path, django_of: Callable[[str], Path]
) -> None:
    """What is signed with the user's password, and how, has changed."""
    environ = {"PYTHONPATH": str(django_of(version)), "PYTHONWARNINGS": "ignore"}
    environ = {**os.environ, **environ}
    done = run("sessions.py", str(tmp_path), cwd=PROGRAMS, env=environ)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    engines = ("db", "cached_db", "cache", "file", "signed_cookies")
    assert {made[each]["seen"] for each in engines} == {"warm@example.org"}
    assert {made[each]["left"] for each in engines} == {0}
    assert made["logins"] == {"signals": 0, "last": ["None", "None"]}
