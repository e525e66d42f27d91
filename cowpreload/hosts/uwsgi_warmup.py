"""The warm up on uWSGI: of each application, in its interpreter, by its mount points.

Called by plugin/bridge.c; like uwsgi_apps.py it must not import the native core.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from cowpreload.candidates import AutoReport
from cowpreload.errors import CowError
from cowpreload.hosts.serving import Part
from cowpreload.hosts.signing_in import SECONDS, signed_in_after_trial
from cowpreload.hosts.uwsgi_apps import (
    calls_at_fork,
    record_origins,
    reported,
    say,
    say_traceback,
    settings_of,
)
from cowpreload.hosts.uwsgi_forks import forks, signals_kept, waits
from cowpreload.hosts.uwsgi_known import Known
from cowpreload.interface import Interface, is_asgi, name_of
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
from cowpreload.warmup_visits import Manner


class _Warmed:
    """What was requested before the first fork, in this interpreter.

    Attributes:
        paths: that warmed the master.
        parts: the applications that `auto` is for.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.parts: list[Part] = []


WARMED = _Warmed()


def _owner(path: str, mounts: Sequence[str]) -> str | None:
    """The longest mount point that is the path or a parent of it; "" is of all."""
    plain = unquote(path.partition("?")[0])  # as uWSGI looks at PATH_INFO
    above = [
        each
        for each in mounts
        if not each or plain == each or plain.startswith(each.rstrip("/") + "/")
    ]
    return max(above, key=len, default=None)


@reported
def name_unserved(text: str, mounts: Sequence[str], default_app: int) -> int:
    """Say which warm-up paths uWSGI would give to no application."""
    for path in settings_of(text).warmup_listed:
        if default_app < 0 and _owner(path, mounts) is None:
            say(
                f"cow: warm-up path={path}: no mount serves it; mount an application "
                f"above it, or leave the path out (mounts: {', '.join(mounts)})"
            )
    return 0


@reported
def warm(
    text: str,
    app: Callable[..., Any],
    index: int,
    mounts: Sequence[str],
    default_app: int,
    manage_script_name: int,
    known: str,
) -> tuple[int, int, int] | None:
    """Warm one application up; None with the error printed.

    The default application gets, under no prefix, what is below no mount point.

    Args:
        known: of the main interpreter, as Known.text() gives it.

    Returns:
        The requests made, and how many pages were warmed of the warm-up file, and of
        the routes.
    """
    if is_asgi(app):
        say(
            f"cow: {mounts[index] or 'application'}={name_of(app)}: is ASGI, and uWSGI "
            "speaks WSGI alone: no request would be answered; serve it by gunicorn's "
            "cow_asgi"
        )
        return None
    settings = settings_of(text)
    record_origins()
    mount = mounts[index]
    owners = {path: _owner(path, mounts) for path in settings.warmup_listed}
    prefixes: dict[str | None, str] = {mount: mount if manage_script_name else ""}
    if index == default_app:
        prefixes[None] = ""
    with _signed_in(settings) as cookie:
        requests = 0
        sources: list[str] = []  # of what was found; what is listed, all know
        for owner, prefix in prefixes.items():
            paths = [path for path in settings.warmup_listed if owners[path] == owner]
            automatic = settings.learns and _is_asked(owner, mounts)
            if not paths and not automatic:
                continue
            manner = Manner.of(app, settings, prefix.rstrip("/"), Interface.WSGI)
            manner = replace(manner, cookie=cookie)
            try:
                report = warm_up(app, settings, manner, paths, say)
            except CowError as error:
                say_traceback(error.__cause__ or error)
                say(f"cow: {error}")
                return None
            for warning in report.warnings:
                say(warning)
            requests += report.requests
            WARMED.paths += paths
            if automatic:
                found = _warm_found(
                    app, settings, manner, owner, mounts, Known.of(known)
                )
                requests += found.requests
                sources += [each.source for each in found.warmed()]
        return requests, sources.count("file"), sources.count("route")


@functools.cache
def _say_once(line: str) -> None:
    """Of a user that several applications of one site have."""
    say(line)


def _user(settings: Settings) -> str | None:
    """Whose session is made, if anything is to be requested."""
    asked = settings.warmup or settings.learns
    return settings.warmup_user if asked else None


def _signed_in(settings: Settings) -> contextlib.AbstractContextManager[str]:
    """The session of the user, if there is one; tried in a child where one may be."""
    user, within = _user(settings), min(settings.warmup_timeout, SECONDS)
    return signed_in_after_trial(user, _say_once, within, forks())


def _warm_found(
    app: Callable[..., Any],
    settings: Settings,
    manner: Manner,
    owner: str | None,
    mounts: Sequence[str],
    known: Known,
) -> AutoReport:
    """What auto did, with what is this owner's."""
    from cowpreload.hosts.auto import Automatic  # it imports what few need

    def serves(path: str) -> bool:
        return _owner(path, mounts) == owner

    found = Automatic(
        app,
        settings,
        manner,
        known.before,
        forks(),
        say,
        waits,
        serves=serves,
        at_fork=calls_at_fork(),
        kept=known.kept,
    )
    with signals_kept():
        report = found.warm()
    # The session ends with this warm up; the next has its own.
    WARMED.parts.append(Part(app, replace(manner, cookie=""), serves))
    WARMED.paths += [each.path for each in report.warmed()]
    return report


def _is_asked(owner: str | None, mounts: Sequence[str]) -> bool:
    """Whether there are paths of this owner; None is what no mount serves."""
    return owner is not None or "" not in mounts
