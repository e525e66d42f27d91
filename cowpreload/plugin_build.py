"""Compile plugin/ against the headers inside one uwsgi binary.

Takes the binary's path and a directory; gives cow_plugin.so there. uWSGI's own
builder does the compiling; what is generated here is the option table (from
settings.py) and the identity that the plugin checks when it is loaded.
"""

from __future__ import annotations

import json
import os
import shutil
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


def _ask(binary: str, option: str) -> bytes:
    """What the binary prints for one option, without the newline it adds."""
    try:
        done = subprocess.run([binary, option], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PluginBuildError(
            f"uwsgi={binary}: does not answer {option} ({error}); "
            "give --uwsgi the path of a uWSGI 2.0.31 binary"
        ) from error
    return done.stdout.removesuffix(b"\n")


def _check(binary: str) -> None:
    version = _ask(binary, "--python-version").decode().strip()
    ours = "{}.{}".format(*sys.version_info)
    if version.rpartition(".")[0] != ours:
        raise PluginBuildError(
            f"uwsgi={binary}: runs Python {version or 'none'}, this is {ours}; "
            "install cowpreload into that Python and build there"
        )
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "gcc").split()
    if shutil.which(compiler[0]) is None and shutil.which("gcc") is None:
        raise PluginBuildError(
            f"CC={compiler[0]}: no C compiler; install one, as in apt-get install gcc"
        )
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        raise PluginBuildError(
            f"{header}: missing; install Python's headers, as in "
            "apt-get install python3-dev"
        )


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
    )


def build(binary: str, output: Path) -> None:
    """Compile for `binary`, put PLUGIN_FILE into `output`.

    Raises:
        PluginBuildError: something is missing, or the compiler failed.
    """
    _check(binary)
    with tempfile.TemporaryDirectory(prefix="cowpreload-") as name:
        work = Path(name)
        shutil.copytree(sources(), work / "plugin")
        for header in ("cow.h", "verdict.h", "board.h", "immortal.h"):
            shutil.copy(_PACKAGE / "native" / header, work / "plugin")
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
            output.mkdir(parents=True, exist_ok=True)
            # Not over the old file: a running uWSGI has it mapped.
            shutil.move(
                shutil.copy(made, output / f".{PLUGIN_FILE}"), output / PLUGIN_FILE
            )
        except OSError as error:
            raise PluginBuildError(
                f"output={output}: cannot be written ({error.strerror}); "
                "give --output a directory of yours"
            ) from error
