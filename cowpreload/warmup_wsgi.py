"""One warm-up request of a WSGI application, without a socket.

Takes the callable and what a request is made of; gives its status. What such a request
says of host, scheme and headers, ASGI's says too.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import FileWrapper

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


def _latin(path: str) -> str:
    return unquote_to_bytes(path).decode("latin-1")


def _path_info(path: str, prefix: str) -> str:
    """What is below SCRIPT_NAME, which gunicorn takes as it is in the environment, and
    uWSGI decoded; all of a path that is not."""
    decoded = _latin(path)
    for each in (prefix, _latin(prefix)):
        if f"{decoded}/".startswith(f"{each}/"):
            return decoded[len(each) :] or "/"
    return decoded


def wsgi_environ(
    path: str, host: str, prefix: str = "", headers: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """A GET request for `path` as PEP 3333 wants it; `prefix` is SCRIPT_NAME."""
    plain, _, query = path.partition("?")
    name, _, port = host.partition(":")
    return {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": prefix,
        "PATH_INFO": _path_info(plain, prefix),
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
