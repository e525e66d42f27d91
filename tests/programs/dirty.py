"""A gunicorn dirty app, and a page that calls it; /without does, but not in a warm up.

Works as a gunicorn configuration too.
"""

from __future__ import annotations

from typing import Any

dirty_apps = ["dirty:Doubler"]
dirty_workers = 1
worker_class = "cow"
graceful_timeout = dirty_graceful_timeout = 2


class Doubler:
    """Made on import of this module by the dirty worker alone."""

    def init(self) -> None: ...

    def __call__(self, action: str, *arguments: Any, **named: Any) -> Any:
        return 2 * arguments[0]

    def close(self) -> None: ...


def application(environ, start_response):  # type: ignore[no-untyped-def]
    from gunicorn.dirty import get_dirty_client

    text = "none"
    if environ["PATH_INFO"] == "/with" or "cowpreload.warmup" not in environ:
        text = str(get_dirty_client().execute("dirty:Doubler", "double", 21))
    start_response("200 OK", [])
    return [text.encode()]
