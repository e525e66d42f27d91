"""Many requests at once, each answer read whole and judged: none may be lost.

Bounded in requests and in time.
"""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# (path, status, body): is it the right answer?
Check = Callable[[str, int, bytes], bool]


def is_200(path: str, status: int, body: bytes) -> bool:
    return status == 200 and len(body) > 0


@dataclass
class Report:
    """What became of each request.

    Attributes:
        right: answers that the check took.
        wrong: answers that it did not take.
        failed: requests without a whole answer.
        errors: one text for each of the latter two.
    """

    right: int = 0
    wrong: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)


class Load:
    """`concurrency` clients, each a thread that makes one request after the other.

    Args:
        port: of 127.0.0.1.
        paths: asked for in turn.
        requests: no more than these in all.
        seconds: no longer than this.
        pause: seconds that a client waits before each request. One that does not takes
            all of a core, for as long as the test waits for something else.
        keepalive: so many clients keep their connection until the server ends it.
        headers: of every request.
    """

    def __init__(
        self,
        port: int,
        paths: Sequence[str],
        *,
        requests: int = 1_000_000,
        seconds: float = 300.0,
        concurrency: int = 4,
        pause: float = 0.01,
        keepalive: int = 0,
        check: Check = is_200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._headers = dict(headers or {})
        self._port, self._pause, self._check = port, pause, check
        self._todo = itertools.islice(itertools.cycle(paths), requests)
        self._end = time.monotonic() + seconds
        self._stopped = False
        self._lock = threading.Lock()
        self.report = Report()
        self._clients = [
            threading.Thread(target=self._client, args=[number < keepalive])
            for number in range(concurrency)
        ]

    def start(self) -> Load:
        for client in self._clients:
            client.start()
        return self

    def finish(self) -> Report:
        """Wait for the last answer."""
        for client in self._clients:
            client.join()
        return self.report

    def stop(self) -> Report:
        """Let each client end its request, then as `finish`."""
        self._stopped = True
        return self.finish()

    @property
    def over(self) -> bool:
        """Whether no further request will be made: stopped, or out of time."""
        return self._stopped or time.monotonic() >= self._end

    def _next(self) -> str | None:
        with self._lock:
            return None if self.over else next(self._todo, None)

    def _client(self, keepalive: bool) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = self._headers
        if not keepalive:
            headers = {**headers, "Connection": "close"}
        while (path := self._next()) is not None:
            time.sleep(self._pause)
            try:
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                status, body = answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._count("failed", f"{path}: {type(error).__name__}: {error}")
                connection.close()
                continue
            if self._check(path, status, body):
                self._count("right")
            else:
                self._count("wrong", f"{path}: {status} {body[:80]!r}")
            if not keepalive:
                connection.close()
        connection.close()

    def _count(self, what: str, error: str = "") -> None:
        with self._lock:
            setattr(self.report, what, getattr(self.report, what) + 1)
            if error:
                self.report.errors.append(error)
