"""An application, and what is inside the middleware around it.

Takes any callable; gives it and what it holds under the names that middleware uses, in
closures too. Reads what is stored and calls nothing: an attribute of a proxy or a
property would run anyone's code.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

# Under which names middleware keeps the application: of Starlette's, werkzeug's,
# whitenoise's, Sentry's, Paste's and Django's kind, and of people's own.
_NAMES = (
    *("app", "application", "wsgi_app", "asgi_app", "wsgi", "asgi", "__wrapped__"),
    *("_app", "_application", "wrapped", "inner", "next", "next_app", "handler"),
    *("wrap_app", "get_response", "_wrapped", "django_app", "flask_app"),
)
# Two or three layers are usual; what is further away is hardly the application.
_DEPTH = 8
_MOST = 200


def _held_by(one: Any) -> Iterator[Any]:
    """What it may hand a request on to."""
    if isinstance(one, MethodType):
        yield one.__self__
        return
    if isinstance(one, functools.partial):
        yield one.func
        yield from one.args
        return
    try:
        stored = vars(one)
    except TypeError:
        stored = {}
    for name in _NAMES:
        if name in stored:
            yield stored[name]
    if isinstance(one, FunctionType):
        for cell in one.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # empty yet
                continue


def around(app: Any) -> Iterator[Any]:
    """`app` first, then what is inside it, the outer ones first."""
    seen: set[int] = set()
    left = deque([(app, 0)])
    while left and len(seen) < _MOST:
        one, depth = left.popleft()
        if id(one) in seen or not callable(one):
            continue
        seen.add(id(one))
        yield one
        if depth < _DEPTH:
            left.extend((each, depth + 1) for each in _held_by(one))
