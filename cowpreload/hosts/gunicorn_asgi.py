"""The worker class `cow_asgi`: gunicorn's own ASGI worker with our lifecycle.

gunicorn closes a connection after a response that has announced to keep it, if SIGTERM
came in between; the client's next request is lost. Here a worker that was told to go
stops accepting and announces the end in each response, but keeps what it announced.
"""

from __future__ import annotations

import asyncio
from typing import Any

from gunicorn.workers import gasgi

from cowpreload.hosts.gunicorn import CowMixin
from cowpreload.hosts.gunicorn_timeouts import end_before_the_kill, for_idle


def _announcing(protocol: Any) -> Any:
    class Announcing(protocol):  # type: ignore[misc]
        """gunicorn's connection, in a worker that may drain."""

        def _will_close(self, *arguments: Any) -> bool:
            draining: bool = self.worker.cow_draining
            return draining or super()._will_close(*arguments)

    return Announcing


class ASGIDrainMixin:
    """Between SIGTERM and gunicorn's own shutdown: no new connection, no broken word.

    Meanwhile `alive` stays true: gunicorn's connections look at it after the response.
    """

    cfg: Any
    loop: Any
    servers: list[Any]
    sockets: Any
    nr_conns: int
    cow_draining = False

    def init_process(self) -> None:
        """First thing in the worker."""
        if hasattr(gasgi.ASGIProtocol, "_will_close"):
            # gunicorn has no other place to name the class of its connections.
            gasgi.ASGIProtocol = _announcing(gasgi.ASGIProtocol)
        end_before_the_kill(self.cfg)
        super().init_process()  # type: ignore[misc]

    def handle_exit_signal(self) -> None:
        """SIGTERM, in the loop."""
        if not self.cow_draining:
            self.cow_draining = True
            self._cow_drain = self.loop.create_task(self._cow_let_idle_go())

    async def _cow_let_idle_go(self) -> None:
        until = self.loop.time() + for_idle(self.cfg)
        if isinstance(self.loop, asyncio.SelectorEventLoop):
            # asyncio drops what it accepted in the turn in which a server closes.
            for listener in self.sockets:
                self.loop.remove_reader(listener.sock)
            for _ in range(3):
                await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        while self.nr_conns > 0 and self.loop.time() < until:
            await asyncio.sleep(0.1)
        super().handle_exit_signal()  # type: ignore[misc]


class CowASGIWorker(ASGIDrainMixin, CowMixin, gasgi.ASGIWorker):  # type: ignore[misc]
    """`--worker-class cow_asgi`, for gunicorn versions that have an ASGI worker."""
