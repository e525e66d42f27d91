"""Worker classes that we do not offer, each with its reason.

gunicorn asks this module for `cow_tornado` and the like; it gets a RuntimeError, which
gunicorn shows as one line and exit code 1.
"""

from __future__ import annotations

from typing import NoReturn

REASONS = {
    "tornado": (
        "tornado's applications are no WSGI or ASGI callables, and hold on to the "
        "loop of the process that made them; "
        "use cow or cow_asgi, or gunicorn's tornado without us"
    ),
    "asgi": (
        "this gunicorn has no ASGI worker; "
        "install gunicorn 25 or newer, or use cow for WSGI"
    ),
}


def __getattr__(name: str) -> NoReturn:
    if name in REASONS:
        raise RuntimeError(f"worker_class=cow_{name}: {REASONS[name]}")
    raise AttributeError(name)
