"""What uvicorn's gunicorn workers need of us, whichever package they come from.

Takes the worker's uvicorn Config; gives it an HTTP protocol that drains. In the master:
uvicorn's own modules are loaded before the fork. Imported for such a worker only.

uvicorn closes idle connections at once when it is told to go: a client that is about to
send on one loses the request. Here each response announces its connection's end from
then on, and an idle connection may send one more request until its keepalive is over.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any

from uvicorn.config import Config

from cowpreload.hosts.gunicorn_timeouts import for_idle, for_requests
from cowpreload.served import Noting

_NEEDED = ("connection_made", "on_response_complete", "shutdown")
_CLOSE = (b"connection", b"close")


async def _no_app(scope: Any, receive: Any, send: Any) -> None:
    """In place of the application, which is not loaded yet."""


class Drain:
    """From SIGTERM on: what this worker's connections have in common."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.begun = False
        self._loop: Any = None

    def begin(self, loop: Any, server_state: Any) -> None:
        """uvicorn asks each connection to shut down; at the first one."""
        if self.begun:
            return
        self.begun = True
        self._loop = loop
        # The list that requests in flight read it from, too.
        server_state.default_headers.append(_CLOSE)
        self._beat()

    def _beat(self) -> None:
        """uvicorn's heartbeat ends with its main loop; the master aborts without."""
        self.worker.notify()
        self._loop.call_later(1.0, self._beat)

    @property
    def idle_seconds(self) -> float:
        """How long an idle connection is waited for."""
        return for_idle(self.worker.cfg)


def draining(protocol: Any) -> Any:
    """The protocol class `protocol`, draining; as it is if it is not of that kind."""
    if not all(hasattr(protocol, name) for name in _NEEDED):
        return protocol

    class Draining(protocol):  # type: ignore[misc]
        cow_drain: Drain
        app: Any

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            noting = self.cow_drain.worker.cow_noting
            if noting is not None:
                self.app = noting.around_asgi(self.app)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if self.cow_drain.begun:  # accepted, but not seen by uvicorn's shutdown
                self.shutdown()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.cow_drain.worker.nr = self.server_state.total_requests

        def shutdown(self) -> None:
            self.cow_drain.begin(self.loop, self.server_state)
            cycle = self.cycle
            if cycle is not None and not cycle.response_started:
                super().shutdown()  # its response announces the end
            else:
                self.loop.call_later(self.cow_drain.idle_seconds, self._cow_close)

        def _cow_close(self) -> None:
            if self.transport.is_closing():
                return
            if self.cycle is None or self.cycle.response_complete:
                super().shutdown()
            else:  # its response has announced to keep the connection
                self.loop.call_later(self.cow_drain.idle_seconds, self._cow_close)

    return Draining


class UvicornMixin:
    """Before CowMixin, in a class made of a UvicornWorker."""

    CONFIG_KWARGS: dict[str, Any]
    cfg: Any
    config: Any
    log: Any
    ppid: int
    cow_noting: Noting | None = None
    _cow_protocol: Any = None
    _cow_orphan = False

    @classmethod
    def cow_configure(cls, cfg: Any) -> type:
        """In the master, before the application is loaded: load uvicorn's modules.

        What fails here fails again in the worker, where uvicorn reports it.
        """
        if cls._cow_protocol is None:
            with contextlib.suppress(Exception):
                kwargs = {"log_config": None, **cls.CONFIG_KWARGS, "app": _no_app}
                config = Config(**kwargs)
                config.load()
                cls._cow_protocol = draining(config.http_protocol_class)
                config.get_loop_factory()
        return super().cow_configure(cfg)  # type: ignore[misc, no-any-return]

    def __init__(self, *arguments: Any) -> None:
        """In the master, right before the fork of this worker."""
        super().__init__(*arguments)
        if self._cow_protocol is not None and isinstance(self.config.http, str):
            own = {"cow_drain": Drain(self)}
            self.config.http = type("CowProtocol", (self._cow_protocol,), own)
        if self.config.timeout_graceful_shutdown is None:
            seconds = for_requests(self.cfg.graceful_timeout)
            self.config.timeout_graceful_shutdown = seconds

    def cow_note(self, noting: Noting) -> None:
        """The connections do it, with the application as uvicorn understood it."""
        self.cow_noting = noting

    def notify(self) -> None:
        """The heartbeat: without a master, go, as gunicorn's own workers do."""
        super().notify()  # type: ignore[misc]
        if self.ppid != os.getppid() and not self._cow_orphan:
            self._cow_orphan = True
            self.log.info("Parent changed, shutting down: %s", self)
            signal.raise_signal(signal.SIGTERM)

    def init_signals(self) -> None:
        """uvicorn raises its signal again when it is through: end by our exit then.

        Its worker leaves the default action, which runs no exit handler.
        """
        super().init_signals()  # type: ignore[misc]
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._cow_end)

    @staticmethod
    def _cow_end(number: int, frame: Any) -> None:
        sys.exit(0)
