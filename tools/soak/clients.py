"""Those who ask: each answer is read whole and compared with what it has to be.

The tests' load, whose requests name themselves; what was lost is kept with all that
can tell whose it was.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Sequence

from harness.load import Connection, Load, Loss

from soak.lost import Lost
from soak.mix import expected

TIMEOUT = 90.0  # seconds: a stopped worker goes on after less, or is killed
PAUSE = 0.1
HEADER = "X-Soak"


class _Asking(threading.local):
    """What a client is just asking."""

    number = 0
    path = ""
    by = 0  # who has answered on its connection before,
    at = 0.0  # and when
    is_lost = False


class Clients(Load):
    """Clients of one server.

    Attributes:
        lost: each request without a whole answer.
        wrong: each answer that is not right.
    """

    def __init__(
        self,
        port: int,
        paths: Sequence[str],
        seconds: float,
        concurrency: int,
        keepalive: int,
    ) -> None:
        """Args: keepalive: so many keep their connection until the server ends it."""
        self.lost: list[Lost] = []
        self.wrong: list[str] = []
        self._numbers = itertools.count(1)
        self._asking = _Asking()
        super().__init__(
            port,
            paths,
            seconds=seconds,
            concurrency=concurrency,
            pause=PAUSE,
            keepalive=keepalive,
            timeout=TIMEOUT,
            check=self._is_right,
        )

    def ask_once(self, path: str) -> bool:
        """One more request, of nobody's turn; whether it had an answer."""
        connection = Connection(self._port, TIMEOUT)
        try:
            self._ask(connection, path, {"Connection": "close"})
            return not self._asking.is_lost
        finally:
            connection.close()

    def _ask(self, connection: Connection, path: str, headers: dict[str, str]) -> None:
        asking = self._asking
        if connection.sock is None:
            asking.by, asking.at = 0, time.monotonic()
        asking.number, asking.path, asking.is_lost = next(self._numbers), path, False
        super()._ask(connection, path, {**headers, HEADER: str(asking.number)})

    def _is_right(self, path: str, status: int, body: bytes) -> bool:
        asking = self._asking
        try:
            given = json.loads(body)
            asking.by, asking.at = int(given["pid"]), time.monotonic()
            is_whole = given["number"] == str(asking.number)
            return status == 200 and is_whole and given["sum"] == expected(path)
        except (ValueError, KeyError, TypeError):
            return False

    def _count(self, what: str, kept: bool, loss: Loss | None = None) -> None:
        asking = self._asking
        if loss and what == "wrong":
            self.wrong.append(f"{asking.number} {loss.text}")
        elif loss:
            asking.is_lost = True
            idle = max(0.0, loss.begun - asking.at) if kept else 0.0
            self.lost.append(Lost(asking.number, loss, asking.by, idle))
        super()._count(what, kept, loss)
