"""A page behind a login, as WSGI and as ASGI; / is open."""

from __future__ import annotations


def status(path: str, query: str, cookie: str, token: str) -> int:
    if path == "/login" and (query, cookie, token) != (
        "ids=1,2",
        "session=s3cret",
        "s3cret",
    ):
        return 403
    return 200


def application(environ, start_response):  # type: ignore[no-untyped-def]
    code = status(
        environ["PATH_INFO"],
        environ["QUERY_STRING"],
        environ.get("HTTP_COOKIE", ""),
        environ.get("HTTP_X_TOKEN", ""),
    )
    start_response(f"{code} STATUS", [])
    return [b"ok"]


async def asgi(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan here")
    headers = dict(scope["headers"])
    code = status(
        scope["path"],
        scope["query_string"].decode(),
        headers.get(b"cookie", b"").decode(),
        headers.get(b"x-token", b"").decode(),
    )
    await send({"type": "http.response.start", "status": code, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
