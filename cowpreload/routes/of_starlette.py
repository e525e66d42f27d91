"""The routes of Starlette and FastAPI: of an application or a router, and mounts."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from cowpreload.routes.route import Mounted, Route, names_of


def routes(app: Any, mounted: Mounted) -> list[Route] | None:
    """GET routes without parameters; None if `app` is none of Starlette's."""
    routing = sys.modules.get("starlette.routing")
    if routing is None:
        return None
    applications = sys.modules.get("starlette.applications")
    starlette = getattr(applications, "Starlette", ())
    if not isinstance(app, (routing.Router, starlette)):
        return None
    return list(_of(_expanded(app.routes), routing, mounted))


def _expanded(listed: Iterable[Any]) -> list[Any]:
    """Those in routers that FastAPI includes, from 0.12x on, as they are: as routes
    that carry the prefix."""
    contexts = getattr(sys.modules.get("fastapi.routing"), "iter_route_contexts", None)
    return list(listed if contexts is None else contexts(listed))


def _of(listed: Iterable[Any], routing: Any, mounted: Mounted) -> Iterable[Route]:
    for each in listed:
        path = getattr(each, "path", None)
        if not isinstance(path, str) or "{" in path:
            continue
        # FastAPI's contexts stand for a route, and say which.
        route = getattr(each, "starlette_route", None) or each
        route = getattr(route, "original_route", None) or route
        if isinstance(route, routing.Mount):
            yield from _mount(path, route, mounted)
        elif isinstance(route, routing.Route):
            methods = getattr(each, "methods", None)
            if methods is None or "GET" in methods:
                view = getattr(each, "endpoint", None)
                yield Route(path or "/", names_of(getattr(each, "name", ""), view))


def _mount(path: str, mount: Any, mounted: Mounted) -> Iterable[Route]:
    files = getattr(sys.modules.get("starlette.staticfiles"), "StaticFiles", ())
    if not isinstance(mount.app, files):
        yield from mounted(path, mount.app)
