"""System checks: what of a site's settings keeps workers from sharing memory, or what a
fork would break. docs/django.md says how each was shown.

Each is a function that Django calls, with the tag `cowpreload`; it gives a list of
Warnings and opens nothing. What Django's own checks find wrong, they leave to those.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from django.core import checks

from cowpreload.audit_threads import threads
from cowpreload.errors import RAISED

TAG = "cowpreload"
_LOCMEM = "django.core.cache.backends.locmem.LocMemCache"
_CACHED_SESSIONS = "django.contrib.sessions.backends.cache"


def register() -> None:
    """Let `manage.py check` and all that checks know them."""
    for check in (templates, started_threads, local_caches, local_sessions):
        checks.register(_checked(check), TAG)


def _checked(check: Callable[[], Iterator[Any]]) -> Callable[..., list[Any]]:
    def run(**_: object) -> list[Any]:
        return list(check())

    run.__name__ = check.__name__
    return run


def templates() -> Iterator[Any]:
    """W001: a loader that compiles a template at each request."""
    from django.template import engines
    from django.template.loaders.cached import Loader

    try:
        found = [getattr(each, "engine", None) for each in engines.all()]
        loaders = [
            loader
            for engine in found
            if engine is not None
            for loader in engine.template_loaders
            if not isinstance(loader, Loader)
        ]
    except RAISED:
        return
    for loader in loaders:
        kind = f"{type(loader).__module__}.{type(loader).__qualname__}"
        yield checks.Warning(
            f"TEMPLATES: {kind} compiles each template anew at each request, in each "
            "worker; nothing of it can be shared.",
            hint="Leave OPTIONS['loaders'] out, or put it inside of "
            "django.template.loaders.cached.Loader. Before Django 4.1, DEBUG does it.",
            id="cowpreload.W001",
        )


def started_threads() -> Iterator[Any]:
    """W002: a thread of the application's that runs when it is loaded."""
    ours = f"name={threading.current_thread().name} "  # runserver checks in one
    try:
        findings = [each.where for each in threads(at_fork=True)]
    except RAISED:
        return
    for where in findings:
        if not where.startswith(ours):
            yield checks.Warning(
                f"A thread runs when the site is loaded, and in no worker that is "
                f"forked then: {where.partition(' started-by=')[0]}.",
                hint="Start it in each worker: cowpreload.after_fork(thread.start).",
                id="cowpreload.W002",
            )


def _caches() -> dict[str, dict[str, Any]]:
    """Those that the settings name, and not Django's default, which few use."""
    found = settings.CACHES if settings.is_overridden("CACHES") else {}
    return {
        alias: each
        for alias, each in found.items()
        if isinstance(each, dict) and each.get("BACKEND") == _LOCMEM
    }


def local_caches() -> Iterator[Any]:
    """W003: a cache that each worker has for itself."""
    for alias in _caches():
        yield checks.Warning(
            f"CACHES[{alias!r}]: what a worker puts into a LocMemCache is its own: "
            "each worker holds a copy, no other sees it, and a recycled one begins "
            "anew.",
            hint="Take a cache that all workers share (Redis, memcached, a file or the "
            "database) for what is large or must be the same everywhere.",
            id="cowpreload.W003",
        )


def local_sessions() -> Iterator[Any]:
    """W004: sessions in such a cache."""
    if settings.SESSION_ENGINE != _CACHED_SESSIONS:
        return
    alias = settings.SESSION_CACHE_ALIAS
    if settings.CACHES.get(alias, {}).get("BACKEND") == _LOCMEM:
        yield checks.Warning(
            f"SESSION_ENGINE: sessions are in CACHES[{alias!r}], a LocMemCache: a "
            "visitor is logged in with one worker only, until that is recycled.",
            hint="Set SESSION_ENGINE to 'django.contrib.sessions.backends.cached_db', "
            "or take a cache that all workers share.",
            id="cowpreload.W004",
        )
