"""A load client that checks every response: a recycled worker must not lose one.

wrk and hey count what answered; a wrong or cut body passes them. This client reads
each response whole and compares it. Loads are bounded in requests and in time.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# Given a path and the answer, is it right?
Check = Callable[[str, int, bytes], bool]


def answers_200(path: str, status: int, body: bytes) -> bool:
    """The plainest check."""
    return status == 200 and bool(body)


@dataclass
class LoadReport:
    """What one load gave; `seconds` from the first request to the last answer."""

    right: int = 0
    wrong: int = 0
    failed: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Right answers a second."""
        return self.right / self.seconds if self.seconds else 0.0


class Load:
    """Clients in threads, each on one connection after the other.

    Args:
        port: of 127.0.0.1.
        paths: requested in turn.
        requests: at most this many in all.
        seconds: at most this long.
        concurrency: clients at a time.
        keepalive: reuse a connection until the server announces its end.
        headers: of each request, a Cookie for example.
    """

    def __init__(
        self,
        port: int,
        paths: Sequence[str],
        *,
        requests: int = 1_000_000,
        seconds: float = 300.0,
        concurrency: int = 4,
        keepalive: bool = False,
        headers: Mapping[str, str] | None = None,
        check: Check = answers_200,
    ) -> None:
        self._port, self._paths, self._check = port, paths, check
        self._left = requests
        self._deadline = time.monotonic() + seconds
        self._keepalive = keepalive
        end = {} if keepalive else {"Connection": "close"}
        self._headers = {**end, **(headers or {})}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._start = time.monotonic()
        self.report = LoadReport()
        self._threads = [
            threading.Thread(target=self._client, name=f"client-{i}")
            for i in range(concurrency)
        ]

    def start(self) -> Load:
        """Begin; `stop` or `finish` ends it."""
        self._start = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> LoadReport:
        """Let each client finish its request, then give the report."""
        self._stopped.set()
        return self.finish()

    def finish(self) -> LoadReport:
        """Wait until all requests are made."""
        for thread in self._threads:
            thread.join()
        self.report.seconds = time.monotonic() - self._start
        return self.report

    def _next(self) -> str | None:
        with self._lock:
            over = time.monotonic() > self._deadline
            if self._left <= 0 or over or self._stopped.is_set():
                return None
            self._left -= 1
            return self._paths[self._left % len(self._paths)]

    def _client(self) -> None:
        connection: http.client.HTTPConnection | None = None
        while (path := self._next()) is not None:
            if connection is None:
                connection = http.client.HTTPConnection(
                    "127.0.0.1", self._port, timeout=60
                )
            connection = self._request(connection, path)
        if connection is not None:
            connection.close()

    def _request(
        self, connection: http.client.HTTPConnection, path: str
    ) -> http.client.HTTPConnection | None:
        """Make one request; the connection if it can be used again."""
        keep = self._keepalive
        try:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            body = response.read()
            right = self._check(path, response.status, body)
            keep = keep and not response.will_close
            with self._lock:
                if right:
                    self.report.right += 1
                else:
                    self.report.wrong += 1
                    self.report.errors.append(
                        f"{path}: {response.status} {body[:80]!r}"
                    )
        except (OSError, http.client.HTTPException) as error:
            keep = False
            with self._lock:
                self.report.failed += 1
                self.report.errors.append(f"{path}: {type(error).__name__}: {error}")
        if keep:
            return connection
        connection.close()
        return None
