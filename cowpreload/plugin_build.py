"""Compile plugin/ against the headers inside one uwsgi binary.

Takes the binary's path and a directory; gives cow_plugin.so there. uWSGI's own
builder does the compiling; what is generated here is the option table (from
settings.py) and the identity that the plugin checks when it is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from cowpreload._version import __version__
from cowpreload.errors import PluginBuildError
from cowpreload.kinds import UWSGI, Declared
from cowpreload.settings import declared_on

PLUGIN_FILE = "cow_plugin.so"
# What distributions name the plugin with uWSGI's Python.
PYTHON_PLUGIN = "python3"
# Before 2.0.27 there is no loop_stop_pipe, by which a thread that waits for requests is
# stopped; in 2.0.27 an idle worker without threads does not end at a reload.
OLDEST = (2, 0, 28)
# Of the native core: what the plugin shares with it.
_SHARED = ("cow.h", "verdict.h", "board.h", "served.h", "immortal.h", "moved.h")
_PACKAGE = Path(__file__).parent


def sources() -> Path:
    """The directory of the C sources: in the wheel, or beside it in a checkout."""
    installed = _PACKAGE / "plugin"
    return installed if installed.is_dir() else _PACKAGE.parent / "plugin"


def fingerprint(header: bytes, flags: bytes) -> int:
    """FNV-1a, 64 bits, of the binary's header and flags, as identity.c computes it."""
    value = 0xCBF29CE484222325
    for byte in header + flags:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _ask(binary: str, *options: str) -> bytes:
    """What the binary prints for these options, without the newline it adds."""
    try:
        done = subprocess.run([binary, *options], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PluginBuildError(
            f"uwsgi={binary}: does not answer {' '.join(options)} ({error}); "
            "give --uwsgi the path of a uWSGI 2.0.31 binary"
        ) from error
    return done.stdout.removesuffix(b"\n")


def _check_version(binary: str) -> None:
    version = _ask(binary, "--version").decode()
    if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise PluginBuildError(
            f"uwsgi={binary}: is uWSGI {version}, the plugin needs {oldest} or newer; "
            "pip install 'cowpreload[uwsgi]'"
        )


def _python(binary: str) -> tuple[str, bool]:
    """The version of the Python that the binary runs, and whether a plugin brings it,
    as in a distribution's packages."""
    try:
        return _ask(binary, "--python-version").decode(), False
    except PluginBuildError:
        pass
    try:
        answer = _ask(binary, "--plugin", PYTHON_PLUGIN, "--python-version")
    except PluginBuildError as error:
        raise PluginBuildError(
            f"uwsgi={binary}: has no Python in it, and no plugin {PYTHON_PLUGIN}; "
            "pip install 'cowpreload[uwsgi]', or install that plugin, as in apt-get "
            f"install uwsgi-plugin-{PYTHON_PLUGIN}"
        ) from error
    return answer.decode(), True


def _compiler() -> tuple[str, str | None]:
    """What CC names, and the path of what would compile, if there is any."""
    given = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "gcc").split()
    return given[0], shutil.which(given[0]) or shutil.which("gcc")


def missing() -> str:
    """What compiling needs and this machine lacks, all of it, and how to install it.

    "" if nothing is. One line: who installs one thing is not to be told of the next.
    """
    lacks = []
    name, compiler = _compiler()
    if compiler is None:
        lacks.append((f"CC={name}: no C compiler", "gcc"))
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        lacks.append((f"{header}: no headers of this Python", "python3-dev"))
    if not lacks:
        return ""
    packages = " ".join(package for _, package in lacks)
    said = ", ".join(lack for lack, _ in lacks)
    return f"{said}; install them, as in apt-get install {packages}"


def _check_library() -> None:
    name, compiler = _compiler()
    assert compiler is not None  # as missing() has found
    ask = [compiler, "-E", "-dM", "-include", "stdlib.h", "-x", "c", os.devnull]
    done = subprocess.run(ask, capture_output=True)
    if done.returncode == 0 and b"__GLIBC__" not in done.stdout:
        raise PluginBuildError(
            f"CC={name}: compiles for a C library that is not glibc, and musl has "
            "no on_exit(), which tells a worker its exit code; serve with gunicorn's "
            "worker class, or on a system with glibc"
        )


def _check(binary: str) -> bool:
    """Whether all is there; gives whether a plugin brings the binary's Python."""
    _check_version(binary)
    version, from_plugin = _python(binary)
    ours = "{}.{}".format(*sys.version_info)
    if version.rpartition(".")[0] != ours:
        raise PluginBuildError(
            f"uwsgi={binary}: runs Python {version or 'none'}, this is {ours}; "
            "install cowpreload into that Python and build there"
        )
    if lacks := missing():
        raise PluginBuildError(lacks)
    _check_library()
    return from_plugin


def _help(declared: Declared) -> str:
    return f"{declared.help} (default {declared.shown_default})"


def option_table() -> str:
    """The rows of plugin/options.c's table."""
    return "".join(
        f"COW_OPTION({json.dumps(each.option)}, {json.dumps(_help(each))})\n"
        for each in declared_on(UWSGI)
    )


def _identity(binary: str) -> str:
    value = fingerprint(_ask(binary, "--dot-h"), _ask(binary, "--cflags"))
    return (
        f"#define COW_FINGERPRINT {value:#x}ull\n"
        f'#define COW_BUILD_VERSION "{__version__}"\n'
        f'#define COW_BUILD_MARK "{mark()}"\n'
    )


def _headers() -> list[Path]:
    return [_PACKAGE / "native" / name for name in _SHARED]


def mark() -> str:
    """What a plugin that this package builds has in its file: of which sources it is.

    The version of the package stays the same between commits; this does not.
    """
    files = [each for each in sources().iterdir() if each.suffix in (".c", ".h", ".py")]
    digest = hashlib.sha256(option_table().encode())
    for each in [*sorted(files), *_headers()]:
        digest.update(each.name.encode() + b"\0" + each.read_bytes())
    board = (_PACKAGE / "native" / "board.h").read_text()
    (revision,) = re.findall(r"#define COW_REVISION (\d+)", board)
    return f"cow-plugin revision={revision} sources={digest.hexdigest()[:16]};"


def stale(plugin: Path) -> str:
    """Why a plugin is not what this package would build; "" if it is.

    Read in the file: nothing is loaded. One of another revision is refused by uWSGI
    when it starts, one of other sources alone is not.
    """
    try:
        found = re.search(rb"cow-plugin revision=(\d+) [^;]{,40};", plugin.read_bytes())
        ours = mark()
    except OSError as error:
        return f"cannot be compared ({error.strerror})"
    if found is None:
        return "was built by an older cowpreload"
    if found[0].decode("ascii", "replace") == ours:
        return ""
    if f"revision={found[1].decode()} " in ours:
        return "was built of other sources than this cowpreload's"
    return "was built by another cowpreload, and uWSGI will not start with it"


def _anybodys(output: Path) -> str:
    """Why others could put another plugin there, for a uWSGI of root's to load; ""."""
    for each in (output, *output.parents):
        if not each.exists():
            continue
        mode = each.stat().st_mode
        if mode & stat.S_IWOTH and (each == output or not mode & stat.S_ISVTX):
            return (
                f"output={output}: any user can write to {each}, and uWSGI loads the "
                "plugin before it drops privileges; chmod o-w, or give --output a "
                "directory of yours"
            )
    return ""


def _put(made: Path, output: Path) -> None:
    """Under a name that nobody knows before, then in one step in its place: a running
    uWSGI has the old file mapped."""
    fd, name = tempfile.mkstemp(dir=output, prefix=f".{PLUGIN_FILE}-")
    try:
        with open(fd, "wb") as file:
            file.write(made.read_bytes())
            os.fchmod(fd, 0o755)
        os.replace(name, output / PLUGIN_FILE)
    except BaseException:
        os.unlink(name)
        raise


def build(binary: str, output: Path) -> list[str]:
    """Compile for `binary`, put PLUGIN_FILE into `output`; the ini lines that load it.

    Raises:
        PluginBuildError: something is missing, the compiler failed, or any user can
            write to the directory.
    """
    if why := _anybodys(output.absolute()):
        raise PluginBuildError(why)
    from_plugin = _check(binary)
    with tempfile.TemporaryDirectory(prefix="cowpreload-") as name:
        work = Path(name)
        shutil.copytree(sources(), work / "plugin")
        for header in _headers():
            shutil.copy(header, work / "plugin")
        (work / "plugin" / "cow_options.h").write_text(option_table())
        (work / "plugin" / "cow_build.h").write_text(_identity(binary))
        done = subprocess.run(
            [os.path.abspath(binary), "--build-plugin", "plugin"],
            cwd=work,
            env=os.environ | {"PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        made = work / PLUGIN_FILE
        if done.returncode or not made.exists():
            raise PluginBuildError(
                f"{done.stdout}\nthe plugin did not compile; see above"
            )
        try:
            output.mkdir(0o755, parents=True, exist_ok=True)
            _put(made, output)
        except OSError as error:
            raise PluginBuildError(
                f"output={output}: cannot be written ({error.strerror}); "
                "give --output a directory of yours"
            ) from error
    # Python first: ours is bound to it when it is loaded.
    needed = [f"need-plugin = {PYTHON_PLUGIN}"] if from_plugin else []
    return [f"plugins-dir = {output}", *needed, "need-plugin = cow"]
