"""Warm up: request the configured paths in the master, in-process, before the fork.

Takes the WSGI or ASGI callable and `Settings`; gives a WarmupReport. A path that
raises, answers 500 or above, or does not answer in time stops the start with a
WarmupError; 3xx and 4xx warn.
Must not open a socket; must leave no event loop or thread behind.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import FileWrapper

from cowpreload.deadline import Deadline, named
from cowpreload.errors import WarmupError
from cowpreload.interface import Interface, as_asgi, kind_of
from cowpreload.records import WarmupReport
from cowpreload.settings import Settings
from cowpreload.warmup_asgi import run_asgi

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


def header_environ(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Headers as CGI names them; several of one name joined, as servers do."""
    environ: dict[str, str] = {}
    for name, value in headers:
        key = name.upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        between = "; " if key == "HTTP_COOKIE" else ", "
        environ[key] = f"{environ[key]}{between}{value}" if key in environ else value
    return environ


def wsgi_environ(
    path: str, host: str, prefix: str = "", headers: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """A GET request for `path` as PEP 3333 wants it; `prefix` is SCRIPT_NAME."""
    plain, _, query = path.partition("?")
    decoded = unquote_to_bytes(plain).decode("latin-1")
    name, _, port = host.partition(":")
    return {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": prefix,
        "PATH_INFO": decoded.removeprefix(prefix) or "/",
        "QUERY_STRING": query,
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
        **header_environ(headers),
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


def _run_wsgi(
    app: Callable[..., Any],
    paths: Sequence[str],
    settings: Settings,
    host: str,
    prefix: str,
    say: Callable[[str], None],
) -> list[tuple[str, int]]:
    statuses = []
    for path in paths:
        what = f"warmup={path}"
        request = named(request_wsgi, what)
        for _ in range(settings.warmup_repeat):
            environ = wsgi_environ(path, host, prefix, settings.warmup_header)
            try:
                with Deadline(what, settings.warmup_timeout, say):
                    status = request(app, environ)
            except WarmupError:
                raise
            except (Exception, SystemExit) as error:
                raise WarmupError.raised(path, error) from error
            statuses.append((path, status))
    return statuses


def _unsaid(line: str) -> None:
    """Where nobody listens."""


def warm_up(
    app: Callable[..., Any],
    settings: Settings,
    paths: Sequence[str] | None = None,
    prefix: str = "",
    say: Callable[[str], None] = _unsaid,
    interface: Interface | None = None,
    lifespan: bool = True,
) -> WarmupReport:
    """Request each path `settings.warmup_repeat` times; main thread only.

    Args:
        app: the WSGI or ASGI callable.
        settings: those that begin with `warmup`.
        paths: instead of settings.warmup, where an application serves only some.
        prefix: SCRIPT_NAME of a mounted WSGI application.
        say: logs a line, while a page takes long.
        interface: what the server speaks; None goes by the application.
        lifespan: whether the server runs that of an ASGI application.

    Raises:
        WarmupError: a path raised, answered 500 or above, or took too long.
    """
    paths = settings.warmup if paths is None else paths
    if not paths:
        return WarmupReport(0, ())
    host = settings.warmup_host or default_host()
    spoken = interface or kind_of(app) or Interface.WSGI
    if spoken is not Interface.WSGI:
        environ = {"HTTP_HOST": host, "HTTP_USER_AGENT": AGENT, **secure_environ()}
        environ |= header_environ(settings.warmup_header)
        statuses = run_asgi(as_asgi(app), paths, settings, environ, say, lifespan)
    else:
        statuses = _run_wsgi(app, paths, settings, host, prefix, say)
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
