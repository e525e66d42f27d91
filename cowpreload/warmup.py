"""Warm up: request the configured paths in the master, in-process, before the fork.

Takes the WSGI or ASGI callable and `Settings`; gives a WarmupReport. A path that
raises or answers 500 or above stops the start with a WarmupError; 3xx and 4xx warn.
Must not open a socket; must leave no event loop or thread behind.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import sys
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit
from wsgiref.util import FileWrapper

from cowpreload.errors import WarmupError
from cowpreload.records import WarmupReport
from cowpreload.settings import Settings

Scope = MutableMapping[str, Any]
AGENT = "cowpreload-warmup"


def default_host() -> str:
    """A Host that the application accepts: Django's first allowed one, or localhost.

    Django answers 400 to any other, which would warm up its error page only.
    """
    if "django.conf" in sys.modules:
        from django.conf import settings

        if settings.configured:
            for host in settings.ALLOWED_HOSTS:
                if host != "*":
                    return str(host).lstrip(".")
    return "localhost"


def secure_environ() -> dict[str, str]:
    """What makes a request look like HTTPS to a Django that redirects all others.

    Such a site would warm up its redirects only.
    """
    if "django.conf" not in sys.modules:
        return {}
    from django.conf import settings

    if not settings.configured or not settings.SECURE_SSL_REDIRECT:
        return {}
    header = settings.SECURE_PROXY_SSL_HEADER
    return {"wsgi.url_scheme": "https"} | ({header[0]: header[1]} if header else {})


def wsgi_environ(path: str, host: str, prefix: str = "") -> dict[str, Any]:
    """A GET request for `path` as PEP 3333 wants it; `prefix` is SCRIPT_NAME."""
    parts = urlsplit(path)
    decoded = unquote_to_bytes(parts.path).decode("latin-1")
    name, _, port = host.partition(":")
    return {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": prefix,
        "PATH_INFO": decoded.removeprefix(prefix) or "/",
        "QUERY_STRING": parts.query,
        "REQUEST_URI": path,
        "RAW_URI": path,
        "SERVER_NAME": name,
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": host,
        "HTTP_USER_AGENT": AGENT,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": FileWrapper,
        "cowpreload.warmup": True,
        **secure_environ(),
    }


def request_wsgi(app: Callable[..., Any], environ: dict[str, Any]) -> int:
    """Make one request, read it to the end, close it; the status code."""
    status = [0]

    def start_response(
        line: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], None]:
        if exc_info and exc_info[1] is not None and status[0]:
            raise exc_info[1]
        status[0] = int(line.split(" ", 1)[0])
        return lambda data: None

    result = app(environ, start_response)
    try:
        for _ in result:
            pass
    finally:
        close = getattr(result, "close", None)
        if close is not None:
            close()
    return status[0]


def is_asgi(app: Any) -> bool:
    """Whether `app` is called as ASGI 3: a coroutine function or such a __call__."""
    if inspect.iscoroutinefunction(app):
        return True
    call = getattr(app, "__call__", None)  # noqa: B004 - the method itself is asked
    return inspect.iscoroutinefunction(call)


def _asgi_scope(path: str, host: str, state: dict[str, Any]) -> Scope:
    parts = urlsplit(path)
    raw = parts.path.encode("latin-1", "replace")
    secure = secure_environ()
    headers = [(b"host", host.encode()), (b"user-agent", AGENT.encode())]
    headers += [
        (name.removeprefix("HTTP_").replace("_", "-").lower().encode(), value.encode())
        for name, value in secure.items()
        if name.startswith("HTTP_")
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": secure.get("wsgi.url_scheme", "http"),
        "path": unquote_to_bytes(parts.path).decode("utf-8", "replace"),
        "raw_path": raw,
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": (host.partition(":")[0], 80),
        "state": state.copy(),
        "cowpreload.warmup": True,
    }


async def _request_asgi(app: Callable[..., Any], scope: Scope) -> int:
    status = 0
    done = asyncio.Event()
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = int(message["status"])
        elif message["type"] == "http.response.body" and not message.get("more_body"):
            done.set()

    await app(scope, receive, send)
    return status


class _Lifespan:
    """The lifespan of an ASGI application around its warm up, where it has one."""

    def __init__(self, app: Callable[..., Any]) -> None:
        self.state: dict[str, Any] = {}
        self._app = app
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outbox: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._task: asyncio.Task[Any] | None = None

    async def _exchange(self, event: str) -> None:
        """Send one event; return at its answer, or when the application is through."""
        assert self._task is not None
        await self._inbox.put({"type": f"lifespan.{event}"})
        answer = asyncio.ensure_future(self._outbox.get())
        await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            return
        message = answer.result()
        if message["type"] == f"lifespan.{event}.failed":
            raise WarmupError(f"lifespan {event} failed: {message.get('message', '')}")

    async def __aenter__(self) -> _Lifespan:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self.state}
        self._task = asyncio.ensure_future(
            self._app(scope, self._inbox.get, self._outbox.put)
        )
        await self._exchange("startup")
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._task is not None
        if not self._task.done():
            await self._exchange("shutdown")
            self._task.cancel()  # it may wait for messages for ever
        # An application without lifespan raises here; servers ignore that too.
        await asyncio.gather(self._task, return_exceptions=True)


async def _run_asgi(
    app: Callable[..., Any], paths: Sequence[str], repeat: int, host: str
) -> list[tuple[str, int]]:
    statuses = []
    async with _Lifespan(app) as lifespan:
        for path in paths:
            for _ in range(repeat):
                scope = _asgi_scope(path, host, lifespan.state)
                try:
                    status = await _request_asgi(app, scope)
                except (Exception, SystemExit) as error:
                    raise _failed(path, error) from error
                statuses.append((path, status))
    return statuses


def _failed(path: str, error: BaseException) -> WarmupError:
    return WarmupError(
        f"warmup={path}: raised {type(error).__name__}: {error}; "
        "mend the page or leave the path out"
    )


def _run_wsgi(
    app: Callable[..., Any],
    paths: Sequence[str],
    repeat: int,
    host: str,
    prefix: str,
) -> list[tuple[str, int]]:
    statuses = []
    for path in paths:
        for _ in range(repeat):
            try:
                status = request_wsgi(app, wsgi_environ(path, host, prefix))
            except (Exception, SystemExit) as error:
                raise _failed(path, error) from error
            statuses.append((path, status))
    return statuses


def warm_up(
    app: Callable[..., Any],
    settings: Settings,
    paths: Sequence[str] | None = None,
    prefix: str = "",
) -> WarmupReport:
    """Request each path `settings.warmup_repeat` times.

    Args:
        app: the WSGI or ASGI callable.
        settings: warmup, warmup_repeat, warmup_host.
        paths: instead of settings.warmup, where an application serves only some.
        prefix: SCRIPT_NAME of a mounted WSGI application.

    Raises:
        WarmupError: a path raised, or answered 500 or above.
    """
    paths = settings.warmup if paths is None else paths
    if not paths:
        return WarmupReport(0, ())
    host = settings.warmup_host or default_host()
    repeat = settings.warmup_repeat
    if is_asgi(app):
        # asyncio.run closes the loop and its executor's threads: none crosses.
        statuses = asyncio.run(_run_asgi(app, paths, repeat, host))
    else:
        statuses = _run_wsgi(app, paths, repeat, host, prefix)
    warnings = []
    for path in dict.fromkeys(paths):
        answers = [status for each, status in statuses if each == path]
        status = max(answers)
        if status >= 500 or not min(answers):
            said = status if min(answers) else "nothing"
            raise WarmupError(
                f"warmup={path}: answered {said}; mend the page or leave the path out"
            )
        if status >= 300:
            page = "an error page" if status >= 400 else "a redirect"
            warnings.append(
                f"cow: warm-up path={path} status={status}: warms {page}; "
                "give a path that answers 200, or set warmup-host"
            )
    return WarmupReport(len(statuses), tuple(warnings))
