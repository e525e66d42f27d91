"""A threaded worker that leaves without dropping connections, on older gunicorns.

gunicorn 23's gthread closes its poller as soon as it is told to go, and with it every
connection that was accepted but had not sent its request yet: 20 of some 400 requests
were lost in 50 recyclings. gunicorn 25 and newer drain by themselves; there this mixin
does nothing.
"""

from __future__ import annotations

import time
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from cowpreload.hosts.gunicorn_timeouts import for_idle, for_requests

DRAINS_ITSELF = hasattr(ThreadWorker, "set_accept_enabled")


class DrainMixin:
    """Between SIGTERM and the end: stop accepting, serve what has been accepted."""

    alive: bool
    cfg: Any
    nr_conns: int
    poller: Any
    sockets: Any
    futures: Any
    _cow_asked = False
    _cow_deadline = 0.0
    _cow_idle_deadline = 0.0

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: only note it; the loop acts on it at its next heartbeat."""
        if DRAINS_ITSELF:
            super().handle_exit(sig, frame)  # type: ignore[misc]
        else:
            self._cow_asked = True

    def notify(self) -> None:
        """The heartbeat at the head of gunicorn's loop."""
        super().notify()  # type: ignore[misc]
        if not self._cow_asked:
            return
        now = time.monotonic()
        if not self._cow_deadline:
            self._cow_deadline = now + for_requests(self.cfg.graceful_timeout)
            self._cow_idle_deadline = now + for_idle(self.cfg)
            for listener in self.sockets:
                self.poller.unregister(listener)
            # Each response announces the end of its connection from now on.
            self.cfg.settings["keepalive"].value = 0
        idle = not self.futures and now > self._cow_idle_deadline
        if self.nr_conns <= 0 or idle or now > self._cow_deadline:
            self.alive = False
