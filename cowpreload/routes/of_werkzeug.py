"""The routes of Flask, and of whatever else keeps a werkzeug Map in `url_map`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from cowpreload.routes.route import Mounted, Route, names_of


def routes(app: Any, mounted: Mounted) -> list[Route] | None:
    """Rules of GET without arguments; None if `app` is none of werkzeug's."""
    dispatcher = sys.modules.get("werkzeug.middleware.dispatcher")
    if dispatcher is not None and isinstance(app, dispatcher.DispatcherMiddleware):
        return _dispatched(app, mounted)
    routing = sys.modules.get("werkzeug.routing")
    try:
        url_map = vars(app).get("url_map")
    except TypeError:
        return None
    if routing is None or not isinstance(url_map, routing.Map):
        return None
    views = vars(app).get("view_functions")
    views = views if isinstance(views, Mapping) else {}
    return [
        _route(rule, url_map.host_matching, views.get(rule.endpoint))
        for rule in url_map.iter_rules()
        if _is_plain(rule)
    ]


def _dispatched(app: Any, mounted: Mounted) -> list[Route]:
    """What is mounted, and below no mount what the first application serves."""
    prefixes = sorted(app.mounts)
    found = [
        each
        for each in mounted("", app.app)
        if not any(f"{each.path}/".startswith(f"{prefix}/") for prefix in prefixes)
    ]
    for prefix in prefixes:
        found += mounted(prefix, app.mounts[prefix])
    return found


def _is_plain(rule: Any) -> bool:
    """Whether a GET of this rule needs nothing but its path."""
    given = rule.defaults or {}
    return (
        not set(rule.arguments) - set(given)
        and "<" not in rule.rule
        and (rule.methods is None or "GET" in rule.methods)
        and not rule.build_only
        and not rule.redirect_to
        and "<" not in (rule.host or rule.subdomain or "")
    )


def _route(rule: Any, by_host: bool, view: Any) -> Route:
    names = names_of(rule.endpoint, getattr(view, "view_class", None) or view)
    why_not = "is a websocket" if getattr(rule, "websocket", False) else ""
    if rule.subdomain and not by_host:
        why_not = "is of a subdomain"
    return Route(rule.rule, names, rule.host or "" if by_host else "", why_not)
