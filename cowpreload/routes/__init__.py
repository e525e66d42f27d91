"""Routes: the pages of an application that can be requested as they are.

Takes the WSGI or ASGI callable; gives Found: GET routes without a parameter, the most
likely ones first, as candidates for a trial. Frameworks are looked at only where the
application has imported them. Must not call the application, and must not raise: it
meets objects of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import FunctionType, MethodType
from typing import Any
from urllib.parse import quote

from cowpreload.candidates import Candidate, Found
from cowpreload.errors import RAISED, said
from cowpreload.paths import decoded, is_below
from cowpreload.routes import of_django, of_starlette, of_werkzeug
from cowpreload.routes.left_out import why_left_out
from cowpreload.routes.route import Mounted, Route
from cowpreload.routes.wrapped import around

# More are not tried. Django's admin has five a model, of which most redirect to its
# login: they are cheap, and come late.
MOST = 200
# Mounts in mounts.
_DEPTH = 8
# What a request line may hold as it is: RFC 3986's pchar, and the slash.
_PLAIN = "/:@!$&'()*+,;=~-._"

_FRAMEWORKS: tuple[Callable[[Any, Mounted], list[Route] | None], ...] = (
    of_starlette.routes,
    of_werkzeug.routes,
    of_django.routes,
)


def _name(app: Any) -> str:
    """`module.Class`, or of a function its own name; asks no object for anything."""
    if not isinstance(app, (FunctionType, MethodType, type)):
        app = type(app)
    return f"{app.__module__}.{app.__qualname__}"


def _read(app: Any, depth: int, faults: list[str]) -> list[Route] | None:
    """The routes of the first framework that knows what is in `app`; None: none does.

    What one raises is a fault: its routes may be anyone's code.
    """

    def mounted(prefix: str, inner: Any) -> list[Route]:
        if depth >= _DEPTH:
            return []
        below = _read(inner, depth + 1, faults) or []
        return [each.below(prefix) for each in below]

    for each in around(app):
        for framework in _FRAMEWORKS:
            try:
                found = framework(each, mounted)
            except RAISED as error:
                faults.append(f"{_name(each)} raised {said(error)}")
                continue
            if found is not None:
                return found
    return None


def _order(path: str) -> tuple[int, int, str]:
    """The root first, then what is short: what most visitors ask for."""
    return len([each for each in path.split("/") if each]), len(path), path


def why_not_again(path: str, skip: Collection[str] = (), prefix: str = "") -> str:
    """Why a path that a visitor has requested is not requested unasked, or "".

    `prefix` is SCRIPT_NAME, which is noted of no path, and belongs to those to skip.
    However the path is written: anybody can, and the application answers all the same.
    """
    if any(is_below(prefix + path, each) for each in skip):
        return "warmup-skip"
    return why_left_out(Route(decoded(path)))


def find(
    app: Any,
    prefix: str = "",
    skip: Collection[str] = (),
    known: Collection[str] = (),
    most: int = MOST,
) -> Found:
    """The candidates that the routes of `app` give.

    Args:
        app: the application, or what is wrapped around it.
        prefix: SCRIPT_NAME; each path begins with it.
        skip: paths that are left out, with all below them.
        known: paths that need no trial, or have one already.
        most: how many are given.
    """
    faults: list[str] = []
    routes = _read(app, 0, faults)
    if routes is None:
        unknown = f"no routes are known of {_name(app)}; list paths"
        return Found(note="; ".join(faults) or unknown)
    candidates: dict[tuple[str, str], Candidate] = {}
    left_out: dict[str, str] = {}
    for route in routes:
        path = quote(prefix + route.path, safe=_PLAIN)
        reason = why_left_out(route)
        if any(is_below(path, each) for each in skip):
            reason = "warmup-skip"
        if reason:
            left_out[path] = reason
        elif path not in known:
            candidates[path, route.host] = Candidate(path, route.host)
    # A path that two routes name is served by one of them, and nobody says by which.
    ordered = sorted(
        (each for each in candidates.values() if each.path not in left_out),
        key=lambda each: (_order(each.path), each.host),
    )
    left_out |= {each.path: f"beyond the first {MOST}" for each in ordered[most:]}
    return Found(
        tuple(ordered[:most]), tuple(sorted(left_out.items())), "; ".join(faults)
    )
