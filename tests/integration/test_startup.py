"""The start-up file and the ways to name the worker class."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from conftest import PROGRAMS, Servers, run
from test_lifecycle import me

from cowpreload.startup import NEEDS_START, START

ROOT = Path(__file__).parent.parent.parent
PURELIB = Path(sysconfig.get_paths()["purelib"])
LOADED = "import sys; print([m for m in sys.modules if m.startswith(('cow', 'guni'))])"


def test_literally_what_the_readme_says(servers: Servers, tmp_path: Path) -> None:
    """From any directory, with no configuration file."""
    server = servers.gunicorn(
        "--worker-class", "cow", "--workers", "4", "--cow-max-private", "200M",
        directory=tmp_path, environ={"PYTHONPATH": str(PROGRAMS)},
    )  # fmt: skip
    assert me(server.wait_serving(workers=4))["worker"]["slot"] >= 1
    assert "max-private=200MiB" in server.log


@pytest.mark.parametrize(
    "name",
    ["cow", "egg:cowpreload#cow", "cowpreload.hosts.gunicorn.CowWorker"],
)
@pytest.mark.parametrize("hook", ["1", "0"])
def test_every_name_of_the_class_preloads(
    servers: Servers, name: str, hook: str
) -> None:
    """Without the start-up hook too, but for the short name: settings from COW_*."""
    if (name, hook) == ("cow", "0"):
        pytest.skip("the short name is what the hook is for")
    environ = {"COWPRELOAD_STARTUP": hook, "COW_STRIKES": "7", "COW_WARMUP": "/"}
    server = servers.gunicorn("-k", name, "--threads", "2", environ=environ)
    assert me(server.wait_serving())["worker"]["generation"] == 1
    assert "strikes=7" in server.log
    assert "warmup-requests=2" in server.log


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (["--cow-strikes", "9"], {}),
        ([], {"GUNICORN_CMD_ARGS": "--cow-strikes 9"}),
        ([], {"COW_STRIKES": "9"}),
        (["--config", "strikes.py"], {"COW_STRIKES": "2"}),
    ],
)
def test_options_come_from_where_gunicorn_takes_them(
    servers: Servers, arguments: list[str], environ: dict[str, str]
) -> None:
    server = servers.gunicorn("-k", "cow", *arguments, environ=environ).wait_serving()
    assert "strikes=9" in server.log


def test_a_file_that_sets_what_only_the_hook_can_read_is_refused(
    servers: Servers,
) -> None:
    server = servers.gunicorn(
        "-k", "egg:cowpreload#cow", "-c", "strikes.py",
        environ={"COWPRELOAD_STARTUP": "0"},
    )  # fmt: skip
    assert server.wait_exit() == 1
    assert "cow_strikes: no effect, the start-up hook is off" in server.log


def test_an_application_that_does_not_import_halts_without_the_hook_too(
    servers: Servers,
) -> None:
    environ = {"COWPRELOAD_STARTUP": "0", "BREAK": "import"}
    server = servers.gunicorn("-k", "egg:cowpreload#cow", environ=environ)
    assert server.wait_exit() == 4
    assert "ImportError: the application does not import" in server.log


def test_settings_without_effect_are_named(servers: Servers) -> None:
    server = servers.gunicorn("-k", "sync", "--cow-max-private", "200M").wait_serving()
    assert "cow: cow_max_private: no effect under worker_class=sync" in server.log


def test_gunicorn_help_lists_the_options() -> None:
    done = run("-m", "gunicorn", "--help")
    assert done.returncode == 0
    assert "--cow-max-private SIZE" in done.stdout
    assert "--cow-exit CHOICE" in done.stdout


def test_nothing_is_imported_until_gunicorn_is() -> None:
    assert run("-c", LOADED).stdout.strip() == "[]"


def test_the_hook_can_be_switched_off() -> None:
    environ = {**os.environ, "COWPRELOAD_STARTUP": "0"}
    done = run(
        "-c", "import gunicorn.workers as w; print('cow' in w.SUPPORTED_WORKERS)"
    )
    assert done.stdout.strip() == "False"  # gunicorn.config was not imported
    text = (
        "import gunicorn.config, gunicorn.workers as w;"
        "print('cow' in w.SUPPORTED_WORKERS)"
    )
    assert run("-c", text).stdout.strip() == "True"
    assert run("-c", text, env=environ).stdout.strip() == "False"


def bare(directory: Path) -> tuple[str, Path]:
    """An interpreter with nothing installed, and where its libraries go."""
    venv.create(directory / "venv", with_pip=False)
    python = str(directory / "venv" / "bin" / "python")
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    return python, Path(subprocess.check_output([python, "-c", ask], text=True).strip())


def test_a_damaged_installation_still_starts_python(tmp_path: Path) -> None:
    """The .pth is there, the package is not."""
    python, library = bare(tmp_path)
    line = (PURELIB / "cowpreload.pth").read_text()
    (library / "cowpreload.pth").write_text(line)
    (library / "gunicorn").mkdir()
    (library / "gunicorn" / "__init__.py").touch()
    (library / "gunicorn" / "config.py").write_text("NAME = 1\n")
    done = subprocess.run(
        [python, "-c", "import gunicorn.config as c; print(c.NAME)"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "cow: start-up hook failed: ModuleNotFoundError" in done.stderr


def test_the_start_file_names_what_exists() -> None:
    """It is installed where the .pth is not read any more."""
    module, _, name = START.partition(":")
    assert run("-c", f"import {module}; {module}.{name}()").returncode == 0
    assert (PURELIB / "cowpreload.start").exists() is NEEDS_START


@pytest.mark.skipif(sys.version_info < (3, 15), reason="PEP 829 came with 3.15")
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "damaged"])
def test_the_start_file_does_what_the_pth_does(tmp_path: Path, whole: bool) -> None:
    """Where it is installed: the .pth beside it is ignored, and none needs typing."""
    python, library = bare(tmp_path)
    (library / "cowpreload.start").write_text(f"{START}\n")
    (library / "cowpreload.pth").write_text("import sys; print('pth')\n")
    if whole:
        (library / "paths.pth").write_text(f"{ROOT}\n{PURELIB}\n")
    loaded = (
        "import sys; print(*sorted(m for m in sys.modules if m[:3] in ('cow', 'typ')))"
    )
    done = subprocess.run([python, "-c", loaded], capture_output=True, text=True)
    assert (done.returncode, "pth" in done.stdout) == (0, False)
    known = "cowpreload cowpreload._version cowpreload.startup types\n"
    assert (done.stdout == known) is whole
    if not whole:
        assert "Error resolving entry point cowpreload.startup:install" in done.stderr
        return
    text = (
        "import gunicorn.config, gunicorn.workers as w;"
        "print('cow' in w.SUPPORTED_WORKERS)"
    )
    for hook in ("1", "0"):
        done = subprocess.run(
            [python, "-c", text],
            capture_output=True,
            text=True,
            env={**os.environ, "COWPRELOAD_STARTUP": hook},
        )
        assert (done.stdout, done.stderr) == (f"{hook == '1'}\n", "")


def test_a_wheel_carries_the_start_up_files_and_the_plugin(tmp_path: Path) -> None:
    """What an editable install cannot show; by way of the source distribution."""
    make = "import sys; from setuptools.build_meta import build_sdist as make;"
    subprocess.run(
        [sys.executable, "-c", f"{make} make({str(tmp_path)!r})"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (source,) = tmp_path.glob("*.tar.gz")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "target"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
         "--target", str(target), str(wheel)],
        check=True,
    )  # fmt: skip
    names = {str(path.relative_to(target)) for path in target.rglob("*")}
    assert {"cowpreload.pth", "cowpreload/py.typed"} <= names
    assert ("cowpreload.start" in names) is NEEDS_START
    assert {"cowpreload/plugin/plugin.c", "cowpreload/native/cow.h"} <= names
    assert not [name for name in names if name.startswith(("tests", "examples"))]


def test_an_asgi_class_is_refused_where_gunicorn_has_none(
    servers: Servers, gunicorn23: Path
) -> None:
    environ = {"PYTHONPATH": str(gunicorn23)}
    server = servers.gunicorn("-k", "cow_asgi", app="app:asgi", environ=environ)
    assert server.wait_exit() == 1
    assert "worker_class=cow_asgi: this gunicorn has no ASGI worker" in server.log
