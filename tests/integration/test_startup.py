"""The start-up file and the ways to name the worker class."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import PROGRAMS, Servers, run
from test_lifecycle import me

ROOT = Path(__file__).parent.parent.parent
BESIDE = ROOT / "cowpreload" / "start-up"
NEEDS_START = sys.version_info >= (3, 18)
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


def test_gunicorn_help_shows_no_secret_of_the_environment() -> None:
    environ = {"COW_WARMUP_HEADER": "Cookie: s3cret", "COW_MAX_PRIVATE": "200M"}
    done = run("-m", "gunicorn", "--help", env={**os.environ, **environ})
    assert "[200M]" in done.stdout
    assert "repeatable [...]" in " ".join(done.stdout.split())
    assert "s3cret" not in done.stdout


def test_nothing_is_imported_until_gunicorn_is() -> None:
    assert run("-c", LOADED).stdout.strip() == "[]"


def test_a_gunicorn_of_another_class_makes_none_of_our_records() -> None:
    """Half of the hook's cost: 27 ms of processor time with them, 13 without."""
    code = f"import gunicorn.config; {LOADED}"
    loaded = run("-c", code).stdout
    assert "cowpreload.settings" in loaded
    assert "cowpreload.records" not in loaded


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


KNOWN = (
    "import sys, gunicorn.config, gunicorn.workers as w;"
    "print('cow' in w.SUPPORTED_WORKERS)"
)


def quiet(python: str, code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """What a fresh interpreter says."""
    return subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        cwd=Path(python).parent,  # not the checkout: it would be on the path
    )


def another_gunicorn(library: Path, config: str, workers: str) -> None:
    """Put one with these two modules where the interpreter looks."""
    (library / "gunicorn" / "workers").mkdir(parents=True)
    (library / "gunicorn" / "__init__.py").write_text("__version__ = '99.0'\n")
    (library / "gunicorn" / "config.py").write_text(config)
    (library / "gunicorn" / "workers" / "__init__.py").write_text(workers)


def beside(library: Path, *more: Path) -> None:
    """Install what is installed beside the package, with `more` on the path."""
    for name in ("cowpreload.pth", "_cowpreload_startup.py"):
        shutil.copy(BESIDE / name, library)
    (library / "paths.pth").write_text("".join(f"{path}\n" for path in more))


def test_a_damaged_installation_still_starts_python(tmp_path: Path) -> None:
    """The start-up files are there, the package is not."""
    python, library = bare(tmp_path)
    beside(library)
    another_gunicorn(library, "NAME = 1\n", "")
    done = quiet(python, "import gunicorn.config as c; print(c.NAME)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.startswith("cow: start-up hook failed: ModuleNotFoundError")
    assert len(done.stderr.splitlines()) == 1


CONFIG = """
class Setting: pass
class Config:
    @property
    def worker_class(self): return "theirs"
"""


@pytest.mark.parametrize(
    ("config", "workers", "error"),
    [
        (CONFIG, "", "ImportError: cannot import name 'SUPPORTED_WORKERS'"),
        (CONFIG.replace("Setting", "Option"), "SUPPORTED_WORKERS = {}", "AttributeE"),
        (CONFIG.replace("@property", ""), "SUPPORTED_WORKERS = {}", "AttributeError"),
    ],
    ids=["no table of classes", "no Setting", "no property"],
)
def test_a_gunicorn_that_we_do_not_know_runs_without_us(
    tmp_path: Path, config: str, workers: str, error: str
) -> None:
    """One line with its version; no traceback, and nothing is half registered."""
    python, library = bare(tmp_path)
    beside(library, ROOT, PURELIB)
    another_gunicorn(tmp_path / "other", config, workers)
    code = (
        "import gunicorn.config as c, gunicorn.workers as w;"
        "print(getattr(w, 'SUPPORTED_WORKERS', {}), c.Config().worker_class)"
    )
    done = quiet(python, code, PYTHONPATH=str(tmp_path / "other"))
    assert done.returncode == 0
    assert done.stdout.startswith("{} ")
    (line,) = done.stderr.splitlines()
    assert line.startswith("cow: gunicorn 99.0 is not known to cowpreload ")
    assert f"runs without it: {error}" in line


def test_a_loader_that_serves_other_modules_too_is_left_alone(tmp_path: Path) -> None:
    """zipimport has one for a whole folder: each module would register us again."""
    python, library = bare(tmp_path)
    beside(library, ROOT, PURELIB)
    home = Path(next(iter(find_spec("gunicorn").submodule_search_locations)))
    shutil.make_archive(str(tmp_path / "wsgi"), "zip", home.parent, home.name)
    code = f"{KNOWN}; import gunicorn.util, gunicorn.arbiter as a; print(a.__file__)"
    done = quiet(python, code, PYTHONPATH=str(tmp_path / "wsgi.zip"))
    inside = str(tmp_path / "wsgi.zip" / "gunicorn" / "arbiter.py")
    assert (done.stdout, done.stderr) == (f"True\n{inside}\n", "")


READ_ONLY = """
import sys
from importlib.machinery import PathFinder
class Loader:
    __slots__ = ("real",)
    def __init__(self, real): self.real = real
    def create_module(self, spec): return None
    def exec_module(self, module): self.real.exec_module(module)
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target)
        if name == "gunicorn.config":
            spec.loader = Loader(spec.loader)
        return spec
names = [getattr(each, "__name__", "") for each in sys.meta_path]
sys.meta_path.insert(names.index("CowpreloadFinder") + 1, Finder)
"""


def test_a_loader_without_attributes_registers_us(tmp_path: Path) -> None:
    done = run("-c", READ_ONLY + KNOWN)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_modules_own_loader_is_what_others_see() -> None:
    """As inspect and importlib.resources do; asking for the spec changes nothing."""
    code = (
        "import importlib.util, inspect, sys\n"
        "assert importlib.util.find_spec('gunicorn.config').origin\n"
        "assert 'gunicorn.config' not in sys.modules\n"
        "import gunicorn.config as c\n"
        "loader = type(c.__loader__).__name__, type(c.__spec__.loader).__name__\n"
        "source = 'class Setting' in inspect.getsource(c)\n"
        "finders = [f for f in sys.meta_path if 'Cow' in getattr(f, '__name__', '')]\n"
        "print(*loader, source, finders)\n"
    )
    done = run("-c", f"{code}{KNOWN}")
    loader = "SourceFileLoader"
    assert done.stdout == f"{loader} {loader} True []\nTrue\n"
    assert done.stderr == ""


def test_the_start_file_names_what_exists() -> None:
    """It is installed where the .pth is not read any more."""
    module, _, name = (BESIDE / "cowpreload.start").read_text().strip().partition(":")
    assert run("-c", f"import {module}; {module}.{name}()").returncode == 0
    assert (PURELIB / "cowpreload.start").exists() is NEEDS_START


@pytest.mark.skipif(sys.version_info < (3, 15), reason="PEP 829 came with 3.15")
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "damaged"])
def test_the_start_file_does_what_the_pth_does(tmp_path: Path, whole: bool) -> None:
    """Where it is installed: the .pth beside it is ignored, and none needs typing."""
    python, library = bare(tmp_path)
    shutil.copy(BESIDE / "cowpreload.start", library)
    if whole:
        shutil.copy(BESIDE / "_cowpreload_startup.py", library)
    (library / "cowpreload.pth").write_text("import sys; print('pth')\n")
    if whole:
        (library / "paths.pth").write_text(f"{ROOT}\n{PURELIB}\n")
    loaded = (
        "import sys; print(*sorted(m for m in sys.modules if m[:3] in ('cow', 'typ')))"
    )
    done = subprocess.run([python, "-c", loaded], capture_output=True, text=True)
    assert (done.returncode, "pth" in done.stdout) == (0, False)
    assert not [name for name in done.stdout.split() if name.startswith("cow")]
    if not whole:
        assert "Error resolving entry point _cowpreload_startup:install" in done.stderr
        return
    for hook in ("1", "0"):
        done = quiet(python, KNOWN, COWPRELOAD_STARTUP=hook)
        assert (done.stdout, done.stderr) == (f"{hook == '1'}\n", "")


@pytest.mark.deep  # it builds the package once more; test_wheel installs it, too
def test_an_install_with_target_starts_as_the_readme_says(
    built: Path, tmp_path: Path
) -> None:
    """`pip install --target`, where no .pth is read."""
    target = tmp_path / "target"
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    pip += ["--no-compile", "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True)
    python, _ = bare(tmp_path)
    needed = tmp_path / "needed"
    needed.mkdir()
    for each in ("gunicorn", "packaging", "cffi", "pycparser", "_cffi_backend"):
        for path in PURELIB.glob(f"{each}*"):
            (needed / path.name).symlink_to(path)

    def resolved(name: str, *flags: str) -> str:
        """What gunicorn makes of a worker class and options, or its error."""
        code = (
            "import sys; from gunicorn.app.wsgiapp import WSGIApplication as App\n"
            f"sys.argv[1:] = [*{flags!r}, '-k', {name!r}, 'app:application']\n"
            "print(App().cfg.worker_class.__name__)"
        )
        paths = os.pathsep.join(map(str, (target, needed, PROGRAMS)))
        done = quiet(python, code, PYTHONPATH=paths)
        return done.stdout.strip() or done.stderr

    assert "unrecognized arguments: --cow-strikes" in resolved(
        "cow", "--cow-strikes", "7"
    )
    assert resolved("egg:cowpreload#cow") == "CowWorker"
    shutil.copy(target / "cowpreload.pth", target / "sitecustomize.py")
    assert resolved("cow", "--cow-strikes", "7") == "CowWorker"
    assert "strikes=none: " in resolved("cow", "--cow-strikes", "none")


def test_an_asgi_class_is_refused_where_gunicorn_has_none(
    servers: Servers, gunicorn23: Path
) -> None:
    environ = {"PYTHONPATH": str(gunicorn23)}
    server = servers.gunicorn("-k", "cow_asgi", app="app:asgi", environ=environ)
    assert server.wait_exit() == 1
    assert "worker_class=cow_asgi: this gunicorn has no ASGI worker" in server.log
