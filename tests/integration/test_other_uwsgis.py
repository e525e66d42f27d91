"""The plugin for a uwsgi that is not the one of `pip install`: of a distribution, with
Python as a plugin; for another C library; for a binary without Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Servers, needs_uwsgi
from harness.processes import wait_until
from test_lifecycle import me
from test_plugin import build

from cowpreload.plugin_build import OLDEST, sources

OURS = "{}.{}.{}".format(*sys.version_info)
# apt-get install uwsgi-core uwsgi-plugin-python3 (Debian 12: uWSGI 2.0.21)
DEBIANS = shutil.which("uwsgi-core")
MUSL = shutil.which("musl-gcc")


def fake(directory: Path, version: str, inside: str = "", beside: str = "") -> str:
    """A program that answers as a uwsgi of this version does, and to nothing else: with
    Python `inside`, or `beside` as a plugin."""
    path = directory / "uwsgi"
    path.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f"--version) echo {version} ;;\n"
        + (f"--python-version) echo {inside} ;;\n" if inside else "")
        + (f"'--plugin python3 --python-version') echo {beside} ;;\n" if beside else "")
        + "*) echo unrecognized option >&2; exit 1 ;;\n"
        "esac\n"
    )
    path.chmod(0o755)
    return str(path)


def refusal(binary: str, directory: Path, **environ: str) -> str:
    """What the build says: one line, after the one that names the binary."""
    done = build("--uwsgi", binary, "--output", str(directory / "made"), **environ)
    assert (done.returncode, done.stdout) == (1, "")
    first, line = done.stderr.splitlines()
    assert first == f"cowpreload: building for {binary}"
    return line


@pytest.mark.parametrize("version", ["2.0.21-debian", "2.0.27", "1.9"])
def test_an_older_uwsgi_is_named_before_the_compiler_fails(
    tmp_path: Path, version: str
) -> None:
    binary = fake(tmp_path, version, inside=OURS)
    assert refusal(binary, tmp_path) == (
        f"cowpreload: uwsgi={binary}: is uWSGI {version}, the plugin needs 2.0.28 "
        "or newer; pip install 'cowpreload[uwsgi]'"
    )


@pytest.mark.skipif(not DEBIANS, reason="apt-get install uwsgi-core")
def test_the_uwsgi_of_debian_12_is_named(tmp_path: Path) -> None:
    """It was said not to answer --python-version."""
    assert DEBIANS
    asked = [DEBIANS, "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", said)[:3])) >= OLDEST:
        pytest.skip(f"uWSGI {said.strip()} is new enough")
    line = refusal(DEBIANS, tmp_path)
    assert f"is uWSGI {said.strip()}, the plugin needs 2.0.28 or newer" in line


def test_a_uwsgi_without_python_is_named(tmp_path: Path) -> None:
    binary = fake(tmp_path, "2.0.31")
    line = refusal(binary, tmp_path)
    assert "has no Python in it, and no plugin python3; pip install" in line
    assert "apt-get install uwsgi-plugin-python3" in line


def test_the_python_of_a_plugin_must_be_ours(tmp_path: Path) -> None:
    binary = fake(tmp_path, "2.0.28-debian", beside="2.7.18")
    assert "runs Python 2.7.18, this is" in refusal(binary, tmp_path)


@pytest.mark.skipif(not MUSL, reason="apt-get install musl-tools")
def test_a_compiler_for_musl_is_refused_with_the_reason(tmp_path: Path) -> None:
    """Musl has no on_exit(): the compiler's word for it was all there was."""
    binary = fake(tmp_path, "2.0.31", inside=OURS)
    line = refusal(binary, tmp_path, CC=str(MUSL))
    assert "a C library that is not glibc, and musl has no on_exit()" in line
    assert line.endswith("gunicorn's worker class, or on a system with glibc")


@needs_uwsgi
@pytest.mark.each_python
def test_no_symbol_of_pythons_keeps_the_plugin_from_loading_without_it(
    plugin_directory: Callable[[], Path],
) -> None:
    """python.h must list what the files call: a strong one ends the load by its name,
    before identity.c can say what to do."""
    plugin = plugin_directory() / "cow_plugin.so"
    asked = ["nm", "--dynamic", "--undefined-only", str(plugin)]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    kinds = dict(reversed(line.split()) for line in said.splitlines())
    pythons = {name: kind for name, kind in kinds.items() if re.match("_?Py", name)}
    assert "PyGILState_Ensure" in pythons
    strong = [name for name, kind in pythons.items() if kind not in "wv"]
    assert strong == [], f"add to {sources() / 'python.h'}"


@pytest.fixture(scope="session")
def modular(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with uWSGI 2.0.31 as distributions build it, and python3_plugin.so
    of this Python."""

    def make(*command: str, cwd: Path) -> None:
        environ = {**os.environ, "CFLAGS": "-O0"}
        subprocess.run(command, cwd=cwd, check=True, timeout=600, env=environ)

    directory = tmp_path_factory.mktemp("modular")
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    pip += ("--no-binary", ":all:", "--no-build-isolation", "uwsgi==2.0.31")
    make(*pip, cwd=directory)
    (archive,) = directory.glob("*.tar.gz")
    shutil.unpack_archive(archive, directory, filter="data")
    source = directory / archive.name.removesuffix(".tar.gz")
    core = (source / "buildconf" / "core.ini").read_text()
    profile = f"{core.rstrip()}\nplugin_dir = {source}\n"
    (source / "buildconf" / "parts.ini").write_text(profile)
    config = (sys.executable, "uwsgiconfig.py")
    make(*config, "--build", "parts", cwd=source)
    make(*config, "--plugin", "plugins/python", "parts", "python3", cwd=source)
    return source


@needs_uwsgi
@pytest.mark.deep
def test_a_uwsgi_with_python_as_a_plugin_serves_as_any_other(
    servers: Servers, modular: Path, tmp_path: Path
) -> None:
    """With the lines that the build prints, in their order; and a word in the other."""
    binary = str(modular / "uwsgi")
    done = build("--uwsgi", binary, "--output", str(tmp_path / "made"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"plugins-dir = {tmp_path / 'made'}",
        "need-plugin = python3",
        "need-plugin = cow",
        "cow-max-private = 200M",
    ]
    ini = {
        "plugins-dir": [str(tmp_path / "made")],
        "need-plugin": ["python3", "cow"],
        "virtualenv": sys.prefix,
        "processes": "1",
        "cow-warmup": "/me",
        "cow-check-interval": "0.1",
    }
    server = servers.uwsgi(ini, plugin=False, binary=binary).wait_serving()
    assert "warmup-requests=2" in server.log
    wait_until(lambda: me(server)["worker"]["private"], 20, "a reading")
    server.stop()
    ini["need-plugin"] = ["cow", "python3"]
    server = servers.uwsgi(ini, plugin=False, binary=binary)
    assert server.wait_exit() == 1
    assert "a Python plugin must be named before it" in server.log
