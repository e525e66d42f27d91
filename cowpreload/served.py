"""What the server has served: noted in each worker on the board, for a warm up.

Takes what a host knows of an answered request; gives Served records to whoever has the
board. Nothing of a request is kept but its path, its host and a count, and only of a
GET without a query that was answered with 200. Of one that carries a login, nothing but
that it was there, unless `warmup-private` says otherwise. On uWSGI, the plugin notes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from cowpreload._core import ffi, lib
from cowpreload.board import Board
from cowpreload.candidates import Served
from cowpreload.settings import Settings

# All of a worker's first requests are noted, then one in so many: a page that matters
# comes again.
_FIRST = 1024
_ONE_IN = 8

Message = MutableMapping[str, Any]
App = Callable[..., Awaitable[None]]


def wanted(settings: Settings) -> bool:
    """Whether anything is to be noted: who asked for no learning pays nothing."""
    return settings.learns


def choose(board: Board, settings: Settings) -> None:
    """Which requests are noted from now on, in all workers. Master only."""
    board.raw.served.private_too = settings.warmup_private == "on"


class Noting:
    """Notes the requests of this worker; in any thread."""

    def __init__(self, board: Board) -> None:
        self._served = ffi.addressof(board.raw, "served")
        self._note = lib.cow_served_note
        self._seen = 0

    def note(
        self, path: bytes, host: bytes, cookie: bytes = b"", authorized: bool = False
    ) -> bool:
        """Note a GET without a query, answered with 200; whether it was noted.

        Args:
            path: as requested, with its percent signs.
            host: the Host header.
            cookie: the Cookie header; a login may be known by it.
            authorized: whether there is an Authorization header.
        """
        served, of_path, of_host = self._served, len(path), len(host)
        return bool(
            self._note(
                served, path, of_path, host, of_host, cookie, len(cookie), authorized
            )
        )

    def _skip(self) -> bool:
        self._seen = seen = self._seen + 1  # two threads may lose a count
        return seen > _FIRST and seen % _ONE_IN != 0

    def after_wsgi(
        self, worker: Any, request: Any, environ: Any, response: Any
    ) -> None:
        """gunicorn's post_request hook, of a worker that serves WSGI. Never raises."""
        # What `_skip` and `note` do is written out here: to call them costs 0.3 µs.
        self._seen = seen = self._seen + 1
        if seen > _FIRST and seen % _ONE_IN:
            return
        try:
            if request.method != "GET" or request.query or response.status_code != 200:
                return
            path = request.path
            prefix = environ["SCRIPT_NAME"]
            if prefix:  # which a warm up does not have
                path = path.removeprefix(prefix)
            path = path.encode("latin-1")
            host = environ.get("HTTP_HOST", "").encode("latin-1")
            cookie = environ.get("HTTP_COOKIE")
            cookie = cookie.encode("latin-1") if cookie else b""
            self._note(
                self._served,
                path,
                len(path),
                host,
                len(host),
                cookie,
                len(cookie),
                "HTTP_AUTHORIZATION" in environ,
            )
        except Exception:  # noqa: BLE001 - a worker class has something else there
            return

    def around_asgi(self, app: App) -> App:
        """The application, noted; called as an ASGI 3 application is."""

        def noted(scope: Any, receive: Any, send: Any) -> Awaitable[None]:
            if (
                scope["type"] != "http"
                or scope["method"] != "GET"
                or scope["query_string"]
                or self._skip()
            ):
                return app(scope, receive, send)

            def sending(message: Message) -> Awaitable[None]:
                if message.get("status") == 200:
                    self._note_scope(scope)
                sent: Awaitable[None] = send(message)
                return sent

            return app(scope, receive, sending)

        return noted

    def _note_scope(self, scope: Any) -> None:
        with contextlib.suppress(Exception):  # of a server that leaves something out
            self._note_headers(scope)

    def _note_headers(self, scope: Any) -> None:
        host = cookie = b""
        authorized = False
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"cookie":
                cookie += value + b";"  # HTTP/2 may send several
            elif name == b"authorization":
                authorized = True
        path = scope.get("raw_path") or quote(scope["path"]).encode()
        prefix = scope.get("root_path")
        if prefix:
            path = path.removeprefix(prefix.encode())
        self.note(path, host, cookie, authorized)


def noted(board: Board) -> int:
    """How many requests were noted since the server started."""
    return int(board.raw.served.noted)


def withheld(board: Board) -> int:
    """How many would have been, but for the login that they carried."""
    return int(board.raw.served.withheld)


def read(board: Board) -> list[Served]:
    """All pages on the board; one that is noted at this moment may miss.

    Nor is one there whose path or host a terminal would obey: it was no browser's.
    """
    served = ffi.addressof(board.raw, "served")
    page, count = ffi.new("struct cow_served_page *"), ffi.new("uint32_t *")
    place = ffi.new("uint32_t *")
    found = []
    while lib.cow_served_next(served, place, page, count):
        text = ffi.buffer(page.text)[: page.path + page.host].decode("latin-1")
        if text.isprintable():
            found.append(Served(text[: page.path], text[page.path :], int(count[0])))
    return found
