"""Small applications of real frameworks, by name, and kinds that only look like one."""

from __future__ import annotations

from typing import Any


def _django(kind: str) -> Any:
    from django.conf import settings

    if not settings.configured:
        settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])
    import django

    django.setup()
    if kind == "wsgi":
        from django.core.wsgi import get_wsgi_application as get
    else:
        from django.core.asgi import get_asgi_application as get
    return get()


def _page(request: Any) -> Any:
    from django.http import HttpResponse

    return HttpResponse("ok")


def _route() -> Any:
    from django.urls import path

    return path("", _page)


class Asgi2:
    def __init__(self, scope: Any) -> None:
        self.scope = scope

    async def __call__(self, receive: Any, send: Any) -> None:
        if self.scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


def plain_asgi(scope: Any, receive: Any, send: Any) -> Any:
    """Not a coroutine function, and gives a coroutine."""
    return Asgi2(scope)(receive, send)


def __getattr__(name: str) -> Any:
    if name == "urlpatterns":
        return [_route()]
    if name.startswith("django_"):
        return _django(name.removeprefix("django_"))
    if name == "flask":
        import flask

        made = flask.Flask("shop")
        made.add_url_rule("/", "page", lambda: "ok")
        return made
    if name == "fastapi":
        import fastapi

        api = fastapi.FastAPI()
        api.add_api_route("/", lambda: "ok")
        return api
    raise AttributeError(name)
