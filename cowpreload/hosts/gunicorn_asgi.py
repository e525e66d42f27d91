"""The worker class `cow_asgi`: gunicorn's own ASGI worker with our lifecycle.

gunicorn closes a connection after a response that has announced to keep it, if SIGTERM
came in between; the client's next request is lost. Here a worker that was told to go
stops accepting and announces the end in each response, but keeps what it announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import weakref
from typing import Any

from gunicorn.workers import gasgi

from cowpreload.hosts.gunicorn import CowMixin
from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.gunicorn_timeouts import for_idle, for_requests
from cowpreload.served import Noting

# What gunicorn and its users tell a worker.
_TOLD = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)
_SERVICE_RESTART = 1012  # of RFC 6455's registry of close codes


def _announcing(protocol: Any) -> Any:
    class Announcing(protocol):  # type: ignore[misc]
        """gunicorn's connection, in a worker that may drain."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.worker.cow_connections.add(self)

        def _will_close(self, *arguments: Any) -> bool:
            draining: bool = self.worker.cow_draining
            return draining or super()._will_close(*arguments)

    return Announcing


async def _close_websocket(connection: Any) -> None:
    """Tell a websocket to connect anew, as uvicorn does; gunicorn would wait for it."""
    websocket: Any = getattr(connection, "_websocket", None)
    if getattr(websocket, "accepted", False):
        with contextlib.suppress(Exception):  # its client may be gone
            await websocket._send_close(_SERVICE_RESTART)


class ASGIDrainMixin:
    """Between SIGTERM and gunicorn's own shutdown: no new connection, no broken word.

    Meanwhile `alive` stays true: gunicorn's connections look at it after the response.
    """

    cfg: Any
    log: Any
    loop: Any
    servers: list[Any]
    sockets: Any
    nr_conns: int
    cow_draining = False
    cow_connections: weakref.WeakSet[Any]
    asgi: Any
    _cow_noting: Noting | None = None
    _cow_until = 0.0

    def init_process(self) -> None:
        """First thing in the worker."""
        if hasattr(gasgi.ASGIProtocol, "_will_close"):
            # gunicorn has no other place to name the class of its connections.
            gasgi.ASGIProtocol = _announcing(gasgi.ASGIProtocol)
        self.cow_connections = weakref.WeakSet()
        super().init_process()  # type: ignore[misc]

    def cow_note(self, noting: Noting) -> None:
        """gunicorn's post_request hook would have each connection wait for the end of
        an application's background tasks."""
        self._cow_noting = noting

    def load_wsgi(self) -> None:
        """The application, as the connections call it."""
        super().load_wsgi()  # type: ignore[misc]
        if self._cow_noting is not None:
            self.asgi = self._cow_noting.around_asgi(self.asgi)

    def handle_exit_signal(self) -> None:
        """SIGTERM, in the loop."""
        if not self.cow_draining:
            self.cow_draining = True
            seconds = for_requests(self.cfg.graceful_timeout)
            self._cow_until = self.loop.time() + seconds
            self._cow_drain = self.loop.create_task(self._cow_let_idle_go())

    async def _cow_let_idle_go(self) -> None:
        try:
            await self._cow_drained()
        except Exception as error:
            # Parts of gunicorn's own that another version may have changed.
            Unfailing(self.log).error(
                "cow: drained in part (%r): leaving as gunicorn does", error
            )
        finally:
            super().handle_exit_signal()  # type: ignore[misc]

    async def _cow_drained(self) -> None:
        until = self.loop.time() + for_idle(self.cfg)
        if isinstance(self.loop, asyncio.SelectorEventLoop):
            # asyncio drops what it accepted in the turn in which a server closes.
            for listener in self.sockets:
                self.loop.remove_reader(listener.sock)
            for _ in range(3):
                await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in list(self.cow_connections):
            await _close_websocket(connection)
        while self.nr_conns > 0 and self.loop.time() < until:
            await asyncio.sleep(0.1)
        for connection in list(self.cow_connections):
            # gunicorn would wait for one that has never sent a byte.
            if getattr(connection, "_awaiting_request", False):
                with contextlib.suppress(Exception):  # the others' end goes on
                    connection._keepalive_timeout()

    async def _shutdown(self) -> None:
        """gunicorn's wait for requests, without a heartbeat of its own.

        The master aborts workers whose heart does not beat.
        """
        if self.cow_draining:
            left = self._cow_until - self.loop.time()
            self.cfg.settings["graceful_timeout"].value = max(left, 0.5)
        beating = self.loop.create_task(self._cow_beat())
        try:
            await super()._shutdown()  # type: ignore[misc]
        finally:
            beating.cancel()

    def _cleanup(self) -> None:
        """Requests are over. From here on only SIGKILL and an abort may end the worker.

        Closing the loop would give these signals their default action back: a second
        SIGTERM, or the SIGUSR1 of logrotate, would skip the exit handlers.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _TOLD)
        for each in _TOLD:
            with contextlib.suppress(Exception):  # a loop of the application's own
                self.loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        super()._cleanup()  # type: ignore[misc]

    async def _cow_beat(self) -> None:
        while True:
            self.notify()  # type: ignore[attr-defined]
            await asyncio.sleep(1.0)


class CowASGIWorker(ASGIDrainMixin, CowMixin, gasgi.ASGIWorker):  # type: ignore[misc]
    """`--worker-class cow_asgi`, for gunicorn versions that have an ASGI worker."""
