"""Django is imported by a library and configured by nobody."""

from __future__ import annotations

import django.core.cache
import django.db  # noqa: F401


def application(environ, start_response):  # type: ignore[no-untyped-def]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ok"]
