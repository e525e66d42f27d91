"""The routes of Django: of its URLconf, with what it includes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from cowpreload.errors import RAISED
from cowpreload.routes.route import Mounted, Route, names_of

_HANDLERS = {
    "django.core.handlers.wsgi": "WSGIHandler",
    "django.core.handlers.asgi": "ASGIHandler",
}


def routes(app: Any, mounted: Mounted) -> list[Route] | None:
    """GET routes without parameters; None if `app` is no handler of Django's.

    Imports the URLconf, as the first request would.
    """
    handlers = tuple(
        getattr(sys.modules[name], kind)
        for name, kind in _HANDLERS.items()
        if name in sys.modules
    )
    if not isinstance(app, handlers):
        return None
    from django.urls import get_resolver

    resolver = get_resolver()
    found = []
    seen = set()
    for path, names, callback in _below(resolver, "", ()):
        seen.add(path)
        served = _served(resolver, f"/{path}")
        if served is not None and _gets(callback):
            found.append(
                Route(f"/{path}", (*names, *served), why_not=_file(f"/{path}"))
            )
    # Of a site whose pages are all one pattern's (Wagtail's), the first one.
    root = None if "" in seen else _served(resolver, "/")
    if root is not None:
        found.append(Route("/", root, why_not=_file("/")))
    return found


def _below(
    resolver: Any, prefix: str, names: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Path, names and view of each pattern that is a plain text."""
    for each in resolver.url_patterns:
        text = _text(each.pattern)
        if text is None:
            continue
        if hasattr(each, "url_patterns"):
            inside = (*names, *names_of(each.namespace))
            yield from _below(each, prefix + text, inside)
        else:
            view = each.callback
            own = names_of(each.name, getattr(view, "view_class", view))
            yield prefix + text, (*names, *own), view


def _text(pattern: Any) -> str | None:
    """What a pattern matches, if that is one text; None if it has a parameter.

    The prefix of a language is the default's.
    """
    from django.urls.resolvers import LocalePrefixPattern, RoutePattern
    from django.utils.regex_helper import normalize

    if isinstance(pattern, LocalePrefixPattern):
        return str(pattern.language_prefix)
    if isinstance(pattern, RoutePattern):
        return None if pattern.converters else str(pattern)
    forms: list[tuple[str, list[str]]] = normalize(pattern.regex.pattern)
    plain = [form for form, parameters in forms if not parameters]
    # normalize() writes for str.format's older sister.
    return plain[0].replace("%%", "%") if plain else None


def _served(resolver: Any, path: str) -> tuple[str, ...] | None:
    """The names of the view that a request for the path reaches; None: it needs more,
    or none does. An earlier pattern may catch it, and be another view's.

    What is captured and empty is no more than the path.
    """
    try:
        match = resolver.resolve(path)
    except RAISED:
        return None
    if any((*match.captured_kwargs.values(), *match.args)):
        return None
    # Its view_name is of the module, where it has none.
    return names_of(match.url_name, getattr(match.func, "view_class", match.func))


def _gets(view: Any) -> bool:
    """Whether a view of a class answers GET; of a function, nobody knows.

    Django REST framework's view sets say it in `actions`.
    """
    actions = getattr(view, "actions", None)
    if isinstance(actions, dict):
        return "get" in actions
    kind = getattr(view, "view_class", None) or getattr(view, "cls", None)
    return kind is None or hasattr(kind, "get")


def _file(path: str) -> str:
    from django.conf import settings

    for name in ("STATIC_URL", "MEDIA_URL"):
        url = str(getattr(settings, name, None) or "")
        if url.startswith("/") and url != "/" and path.startswith(url):
            return f"is below {name}"
    return ""
