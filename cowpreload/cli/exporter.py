"""Answer Prometheus' scrapes with the metrics of all servers of this user.

Reads what the servers have put on their boards, and of each master its memory; the
servers take no part. On 127.0.0.1 unless told otherwise: it asks nobody who he is.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cowpreload.errors import RAISED, CowError, said
from cowpreload.listening import addresses
from cowpreload.metrics import families
from cowpreload.report.exposition import (
    OPENMETRICS,
    TEXT,
    exposition,
    wants_openmetrics,
)
from cowpreload.server_names import ServerNames
from cowpreload.view import ServerView

HELP = "answer Prometheus with metrics of the running servers"
LISTEN = "127.0.0.1:9178"
# A worker's figures on its board are at most 30 s old.
_BOARD = 60.0
# A client that says nothing, or a byte now and then, does not keep a thread for longer,
# and all of them no more threads than these.
_CLIENT_SECONDS = 10
_CLIENTS = 32


class ListenError(CowError):
    """`--listen` is no address that can be listened on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen, or to write once."""
    parser.add_argument(
        "--listen",
        default=LISTEN,
        metavar="HOST:PORT",
        help="default: %(default)s; [::1]:9178 for IPv6; port 0: any that is free",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="write the metrics to stdout and end, as for node_exporter's textfiles",
    )


def address(text: str) -> tuple[str, int]:
    """Host and port.

    Raises:
        ListenError: it is none.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ListenError(f"listen={text}: is no HOST:PORT; write it as in {LISTEN}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def look() -> list[ServerView]:
    """All servers of this user that can be seen now; one that ends meanwhile is left
    out, and the others are shown."""
    from cowpreload import servers
    from cowpreload.board import find_masters

    found = []
    for pid in find_masters():
        try:
            found.append(servers.look_at(pid, _BOARD))
        except RAISED as error:
            print(f"cowpreload: pid={pid}: {said(error)}", file=sys.stderr)
    return found


class _Named:
    """The servers' names, the same at each scrape."""

    def __init__(self) -> None:
        self._names = ServerNames()
        self._addresses: dict[int, str] = {}

    def names(self, views: list[ServerView]) -> list[str]:
        # Where a master listens is read once: it takes long where many connections are.
        self._addresses = {
            pid: self._addresses.get(pid) or addresses(pid)
            for pid in (each.master.pid for each in views)
            if pid
        }
        return self._names.of(views, self._addresses)


def handler(scrape: Callable[[bool], str]) -> type[BaseHTTPRequestHandler]:
    """The class that answers; `scrape` gives the text, of OpenMetrics or not."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_SECONDS
        server_version = "cowpreload"
        sys_version = ""

        def setup(self) -> None:
            """Bound the whole of the request's reading, not each of its bytes."""
            super().setup()
            self._slow = threading.Timer(_CLIENT_SECONDS, self._stop_reading)
            self._slow.daemon = True
            self._slow.start()

        def _stop_reading(self) -> None:
            with contextlib.suppress(OSError):  # it has gone meanwhile
                self.connection.shutdown(socket.SHUT_RD)

        def finish(self) -> None:
            """It is answered, or gone."""
            self._slow.cancel()
            super().finish()

        def do_GET(self) -> None:
            """A scrape."""
            self._slow.cancel()
            path = self.path.partition("?")[0]
            if path == "/":
                self._answer(200, "text/plain; charset=utf-8", "see /metrics\n")
            elif path != "/metrics":
                self._answer(404, "text/plain; charset=utf-8", "see /metrics\n")
            else:
                newer = wants_openmetrics(self.headers.get("Accept", ""))
                self._answer(200, OPENMETRICS if newer else TEXT, scrape(newer))

        do_HEAD = do_GET  # noqa: N815 - http.server's name

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode("utf-8", "replace")  # a name may be no UTF-8
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """A line for each scrape would tell nothing."""

    return Handler


def _server(listen: str, scrape: Callable[[bool], str]) -> ThreadingHTTPServer:
    host, port = address(listen)

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True
        room = threading.BoundedSemaphore(_CLIENTS)

        def verify_request(self, request: Any, client_address: Any) -> bool:
            """Whether there is room for one more; else it is closed at once."""
            return self.room.acquire(blocking=False)

        def process_request_thread(self, request: Any, client_address: Any) -> None:
            """One client, in its thread."""
            try:
                super().process_request_thread(request, client_address)
            finally:
                self.room.release()

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that has gone; nothing of ours raises."""

    try:
        return Server((host, port), handler(scrape))
    except OSError as error:
        why = error.strerror or error
        raise ListenError(f"listen={listen}: {why}; name another HOST:PORT") from None


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    lock = threading.Lock()
    named = _Named()

    def scrape(openmetrics: bool) -> str:
        with lock:  # scrapes side by side cost no more than one after the other
            views = look()
            return exposition(
                families(views, named.names(views)), openmetrics=openmetrics
            )

    if arguments.once:
        print(scrape(False), end="")
        return 0
    server = _server(arguments.listen, scrape)
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    print(f"cowpreload: metrics at http://{shown}:{port}/metrics", flush=True)

    def end(number: int, frame: object) -> None:
        # shutdown() waits for the loop, which runs in this thread.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, end)
    with server:
        server.serve_forever()
    return 0
