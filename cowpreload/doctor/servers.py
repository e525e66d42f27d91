"""The servers that are installed beside this interpreter, read once.

Gives a frozen Servers: gunicorn and whether it knows our worker classes, a uwsgi binary
and whether a plugin of ours was built for it. Both are asked in processes of their own,
each with a time limit, which load no application. Never raises.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cowpreload.plugin_build import PLUGIN_FILE, PYTHON_PLUGIN, stale

_SECONDS = 20.0
_STARTUP = ("cowpreload.pth", "cowpreload.start")
# The start-up hook is what makes gunicorn know "cow".
_ASK_GUNICORN = """
import gunicorn.config, gunicorn.workers
print(gunicorn.__version__, "cow" in gunicorn.workers.SUPPORTED_WORKERS,
      any(each.name == "cow_max_private" for each in gunicorn.config.KNOWN_SETTINGS))
"""


@dataclass(frozen=True)
class Servers:
    """What was found; "" where there is nothing.

    Attributes:
        gunicorn: its version.
        knows_us: whether it has our worker classes and settings.
        gunicorn_said: what it printed instead, one line.
        startup: the path of the start-up file.
        startup_off: COWPRELOAD_STARTUP=0.
        uwsgi: the path of the binary.
        uwsgi_version, uwsgi_python: as it says itself.
        brings_python: uwsgi's Python is a plugin, as in distributions.
        plugin: the path of ours.
        plugin_said: why uwsgi does not load it, one line; "" if it does.
        plugin_stale: why it is not what this package builds; "" if it is.
    """

    gunicorn: str = ""
    knows_us: bool = False
    gunicorn_said: str = ""
    startup: str = ""
    startup_off: bool = False
    uwsgi: str = ""
    uwsgi_version: str = ""
    uwsgi_python: str = ""
    brings_python: bool = False
    plugin: str = ""
    plugin_said: str = ""
    plugin_stale: str = ""


def read_servers(uwsgi: str | None, plugin: Path) -> Servers:
    """Those here.

    Args:
        uwsgi: the path of a binary, or None.
        plugin: the directory in which ours was built.
    """
    version, knows_us, said = _gunicorn()
    found = [Path(home) / name for home in sys.path for name in _STARTUP]
    startup = next((str(each) for each in found if each.is_file()), "")
    gunicorn = {"gunicorn": version, "knows_us": knows_us, "gunicorn_said": said}
    off = os.environ.get("COWPRELOAD_STARTUP") == "0"
    hook = {"startup": startup, "startup_off": off}
    return Servers(**gunicorn, **hook, **_uwsgi(uwsgi, plugin))  # type: ignore[arg-type]


def _ask(*command: str) -> tuple[int, str, str]:
    """Exit code, output, and the last line of what was said besides."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, check=False, text=True,
            errors="replace", stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, "", str(error)
    lines = [each for each in done.stderr.splitlines() if each.strip()]
    return done.returncode, done.stdout.strip(), lines[-1] if lines else ""


def _gunicorn() -> tuple[str, bool, str]:
    from importlib.util import find_spec

    if find_spec("gunicorn") is None:
        return "", False, ""
    code, output, said = _ask(sys.executable, "-B", "-c", _ASK_GUNICORN)
    fields = output.split()
    if code or len(fields) != 3:
        return "unknown", False, said or "it does not import"
    return fields[0], fields[1:] == ["True", "True"], said


def _uwsgi(binary: str | None, directory: Path) -> dict[str, object]:
    if binary is None:
        return {}
    code, version, said = _ask(binary, "--version")
    found: dict[str, object] = {"uwsgi": binary, "uwsgi_version": version or said}
    if code:
        return found
    python: tuple[str, ...] = ()
    code, has, _ = _ask(binary, "--python-version")
    if code:
        python = ("--plugin", PYTHON_PLUGIN)
        code, has, _ = _ask(binary, *python, "--python-version")
    found |= {"uwsgi_python": "" if code else has, "brings_python": bool(python)}
    path = directory / PLUGIN_FILE
    if not path.is_file():
        return found
    ours = ("--plugins-dir", str(directory), "--need-plugin", "cow")
    code, _, said = _ask(binary, *python, *ours, "--python-version")
    refused = (said or f"exit status {code}") if code else ""
    built = {"plugin_said": refused, "plugin_stale": stale(path)}
    return found | {"plugin": str(path), **built}
