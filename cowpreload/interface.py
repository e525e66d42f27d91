"""WSGI or ASGI: what an application certainly is, and what a server would do to it.

Takes the callable. Says that it is of the wrong kind only when calling it the way that
the server does can give nothing but an error: what cannot be told is let through.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import Enum
from types import FunctionType, MethodType
from typing import Any


class Interface(Enum):
    """How a server calls an application."""

    WSGI = "WSGI"
    ASGI = "ASGI"
    ANY_ASGI = "ASGI 2"  # or 3: uvicorn's


def _called(app: Any) -> tuple[Any, int]:
    """What runs when `app` is called, and the arguments that it gets beforehand.

    Goes by types alone: an adapter that hands on the attributes of the application in
    it looks like that one.
    """
    if isinstance(app, (type, FunctionType, MethodType, functools.partial)):
        return app, 0
    return getattr(type(app), "__call__", None), 1  # noqa: B004 - it is looked into


def is_asgi(app: Any) -> bool:
    """Whether calling `app` gives a coroutine, as in ASGI 3, and never a response."""
    while isinstance(app, functools.partial):
        app = app.func
    return not isinstance(app, type) and inspect.iscoroutinefunction(_called(app)[0])


def _takes(app: Any, count: int) -> bool:
    """Whether `app` can be called with `count` arguments, as far as one can see."""
    called, beforehand = _called(app)
    if hasattr(called, "__signature__"):
        return True  # may be another function's
    try:
        signature = inspect.signature(called, follow_wrapped=False)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(beforehand + count))
    except TypeError:
        return False
    return True


def is_asgi2(app: Any) -> bool:
    """Whether `app` can only be called with a scope: it gives what is called next."""
    return _takes(app, 1) and not _takes(app, 2) and not _takes(app, 3)


def kind_of(app: Any) -> Interface | None:
    """What `app` certainly is; None if that cannot be told."""
    if is_asgi(app):
        return Interface.ASGI
    if is_asgi2(app):
        return Interface.ANY_ASGI
    wsgi, asgi = _takes(app, 2), _takes(app, 3)
    if wsgi is asgi:
        return None
    return Interface.WSGI if wsgi else Interface.ASGI


def fits(app: Any, interface: Interface) -> bool:
    """Whether a server that speaks `interface` may be able to call `app`."""
    kind = kind_of(app)
    if interface is Interface.ANY_ASGI:
        return kind is not Interface.WSGI
    return kind in (None, interface)


def as_asgi(app: Callable[..., Any]) -> Callable[..., Any]:
    """`app` to be called as ASGI 3, with scope, receive and send at once."""
    if is_asgi(app) or not is_asgi2(app):
        return app

    async def call(scope: Any, receive: Any, send: Any) -> None:
        await app(scope)(receive, send)

    return call


def name_of(app: Any) -> str:
    """`module.Class` of an application, or of a function its own name."""
    named = app if hasattr(app, "__qualname__") else type(app)
    return f"{named.__module__}.{named.__qualname__}"


def name_as_given(text: str) -> str:
    """What an operator calls an application: `shop.wsgi:application` is `shop.wsgi`."""
    return text.removesuffix(":application")
