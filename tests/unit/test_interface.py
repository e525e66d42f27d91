"""WSGI or ASGI: nothing that works is taken for the wrong kind."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from conftest import run

from cowpreload.interface import Interface, fits, kind_of, name_of

WSGI, ASGI, ANY_ASGI = Interface.WSGI, Interface.ASGI, Interface.ANY_ASGI


def wsgi(environ: Any, start_response: Any) -> Any: ...


async def asgi(scope: Any, receive: Any, send: Any) -> None: ...


def asgi_by_a_plain_function(scope: Any, receive: Any, send: Any) -> Any:
    return asgi(scope, receive, send)


class Wsgi:
    def __call__(self, environ: Any, start_response: Any) -> Any: ...


class Asgi:
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...


class Asgi2:
    def __init__(self, scope: Any) -> None: ...

    async def __call__(self, receive: Any, send: Any) -> None: ...


class Endpoint:
    """Starlette's way: the class is the application, its instance is awaited."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def __await__(self) -> Any: ...


class WsgiAnswer:
    """The class is the application, its instance is the response."""

    def __init__(self, environ: Any, start_response: Any) -> None: ...

    def __iter__(self) -> Any: ...


class Both:
    def __call__(self, *arguments: Any) -> Any: ...


class Proxy:
    """As werkzeug's LocalProxy and older middleware."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._app(*arguments, **named)


class Adapter(Proxy):
    """Serves an ASGI application as WSGI and looks like it."""

    def __call__(self, environ: Any, start_response: Any) -> Any: ...


@functools.wraps(asgi)
def wsgi_in_the_clothes_of_asgi(environ: Any, start_response: Any) -> Any: ...


def wsgi_with_more(environ: Any, start_response: Any, more: Any = None) -> Any: ...


@pytest.mark.parametrize(
    ("app", "kind"),
    [
        (wsgi, WSGI),
        (Wsgi(), WSGI),
        (Wsgi().__call__, WSGI),
        (WsgiAnswer, WSGI),
        (functools.partial(wsgi), WSGI),
        (functools.partial(asgi_by_a_plain_function, {}), WSGI),
        (wsgi_in_the_clothes_of_asgi, WSGI),
        (asgi, ASGI),
        (Asgi(), ASGI),
        (Asgi().__call__, ASGI),
        (Endpoint, ASGI),
        (functools.partial(asgi), ASGI),
        (asgi_by_a_plain_function, ASGI),
        (Asgi2, ANY_ASGI),
        (lambda scope: Asgi2(scope), ANY_ASGI),
        (Both(), None),
        (Proxy(asgi), None),
        (Proxy(Wsgi()), None),
        (Adapter(asgi), WSGI),
        (wsgi_with_more, None),
        (print, None),
        (object(), None),
    ],
)
def test_an_application_is_what_can_be_called(app: Any, kind: Any) -> None:
    assert kind_of(app) is kind
    assert fits(app, WSGI) is (kind in (None, WSGI))
    assert fits(app, ASGI) is (kind in (None, ASGI))
    assert fits(app, ANY_ASGI) is (kind is not WSGI)


def test_an_application_is_named() -> None:
    assert name_of(Asgi()) == f"{__name__}.Asgi"
    assert name_of(asgi) == f"{__name__}.asgi"


FRAMEWORKS = {
    "django-wsgi": (
        "from django.core.wsgi import get_wsgi_application as get",
        WSGI,
    ),
    "django-asgi": (
        "from django.core.asgi import get_asgi_application as get",
        ASGI,
    ),
    "flask": ("import flask; get = lambda: flask.Flask('x')", WSGI),
    "starlette": ("from starlette.applications import Starlette as get", ASGI),
    "fastapi": ("from fastapi import FastAPI as get", ASGI),
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_real_application_is_what_it_says(name: str) -> None:
    make, kind = FRAMEWORKS[name]
    pytest.importorskip(name.partition("-")[0])
    text = f"""
from django.conf import settings; settings.configure()
{make}
from cowpreload.interface import kind_of
print(kind_of(get()))
"""
    done = run("-c", text)
    assert done.stdout.strip() == str(kind), done.stderr
