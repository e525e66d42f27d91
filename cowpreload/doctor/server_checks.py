"""The checks of the servers: pure functions from Servers to a fact, in a table."""

from __future__ import annotations

import re
from collections.abc import Callable

from cowpreload.diagnosis import Fact, bad, ok, warn
from cowpreload.doctor.servers import Servers
from cowpreload.plugin_build import OLDEST

_OLDEST_GUNICORN = (23,)
_BUILD = "run: cowpreload plugin build"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def _gunicorn(found: Servers) -> Fact:
    if not found.gunicorn:
        text = "not installed beside this interpreter"
        if found.uwsgi:
            return ok("gunicorn", text)
        hint = "pip install 'cowpreload[gunicorn]', or 'cowpreload[uwsgi]'"
        return warn("gunicorn", f"{text}, nor is uWSGI; {hint}")
    if found.gunicorn == "unknown":
        return bad("gunicorn", f"does not import: {found.gunicorn_said}")
    if _numbers(found.gunicorn) < _OLDEST_GUNICORN:
        return bad(
            "gunicorn", f"{found.gunicorn} is older than 23; install a newer one"
        )
    return ok("gunicorn", f"{found.gunicorn} is supported")


def _startup(found: Servers) -> Fact:
    if found.startup_off:
        text = "COWPRELOAD_STARTUP=0 switches it off: only COW_* variables and "
        return warn("start-up file", f"{text}egg:cowpreload#cow work")
    if not found.startup:
        return warn(
            "start-up file",
            "cowpreload.pth is not on the path (pip install --target?): write "
            "egg:cowpreload#cow, and settings as COW_* variables",
        )
    if found.gunicorn and not found.knows_us:
        said = f": {found.gunicorn_said}" if found.gunicorn_said else ""
        return bad("start-up file", f"is there, and gunicorn does not know `cow`{said}")
    if not found.gunicorn:
        return ok("start-up file", "is there")
    return ok("start-up file", "gunicorn knows `cow` and its settings")


def _uwsgi(found: Servers) -> Fact:
    if not found.uwsgi:
        return ok("uwsgi", "not installed")
    if _numbers(found.uwsgi_version) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        text = f"{found.uwsgi} is {found.uwsgi_version}; {oldest} or newer is needed"
        return warn("uwsgi", text)
    if not found.uwsgi_python:
        return warn("uwsgi", f"{found.uwsgi} has no Python in it")
    how = "as a plugin" if found.brings_python else "built in"
    text = f"{found.uwsgi_version} with Python {found.uwsgi_python} {how}"
    return ok("uwsgi", f"{text}: {found.uwsgi}")


def _plugin(found: Servers) -> Fact:
    if not found.uwsgi:
        return ok("plugin", "no uwsgi to build it for")
    if not found.plugin:
        return ok("plugin", f"not built; to serve with uWSGI, {_BUILD}")
    if found.plugin_said:
        said = found.plugin_said.removeprefix("cow: this plugin ")
        return bad("plugin", f"{found.plugin}: {said}")
    if found.plugin_stale:
        return bad("plugin", f"{found.plugin}: {found.plugin_stale}; {_BUILD}")
    return ok("plugin", f"built for this uwsgi: {found.plugin}")


SERVERS: tuple[Callable[[Servers], Fact], ...] = (_gunicorn, _startup, _uwsgi, _plugin)
