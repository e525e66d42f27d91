"""Worker classes that we do not offer, each with its reason.

gunicorn asks this module for the class; it gets a RuntimeError, which gunicorn shows
as one line and exit code 1.
"""

from __future__ import annotations

from typing import NoReturn

REASONS = {
    "gevent": (
        "worker_class=cow_gevent: gevent's hub and its resolver threads would be made "
        "in the master by the warm up and do not survive the fork; "
        "use cow with --threads, or gunicorn's gevent without us"
    ),
    "tornado": (
        "worker_class=cow_tornado: tornado's loop belongs to the process that made it, "
        "and the application makes it while it is preloaded; "
        "use cow_asgi, or gunicorn's tornado without us"
    ),
    "asgi": (
        "worker_class=cow_asgi: this gunicorn has no ASGI worker; "
        "install gunicorn 25 or newer, or use cow for WSGI"
    ),
}


def __getattr__(name: str) -> NoReturn:
    if name in REASONS:
        raise RuntimeError(REASONS[name])
    raise AttributeError(name)
