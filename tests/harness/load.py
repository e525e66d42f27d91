"""Many requests at once, each answer read whole and judged: none may be lost.

Bounded in requests and in time. What was lost is kept, with its time and how: ledger.py
says what explains it.
"""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

# (path, status, body): is it the right answer?
Check = Callable[[str, int, bytes], bool]


def is_200(path: str, status: int, body: bytes) -> bool:
    return status == 200 and len(body) > 0


def is_sum(path: str, status: int, body: bytes) -> bool:
    """Of app.py's /sum and /growsum: no answer to another request passes for it."""
    number = int(parse_qs(urlsplit(path).query)["n"][0])
    return status == 200 and body == str(sum(range(number))).encode()


@dataclass(frozen=True)
class Loss:
    """A request without its right answer.

    Attributes:
        begun, ended: seconds of the monotonic clock, from before the connect on.
        how: `refused` (no connection), `reset` (closed before a byte of the answer),
            `cut` (closed in the middle of it), `timeout`, or `wrong`.
        kept: whether its connection had served another before.
        text: the path, and what was seen.
    """

    begun: float
    ended: float
    how: str
    kept: bool
    text: str


@dataclass
class Report:
    """What became of each request.

    Attributes:
        right: answers that the check took.
        wrong: answers that it did not take.
        failed: requests without a whole answer.
        on_kept: those of all three on a connection that had served another before.
        kept_closed: kept connections that the server closed before a byte of an answer,
            and whose request was made again (`again`), which is counted above.
        losses: what was wrong or failed, in the order of its end.
    """

    right: int = 0
    wrong: int = 0
    failed: int = 0
    on_kept: int = 0
    kept_closed: int = 0
    losses: list[Loss] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return self.right + self.wrong + self.failed

    @property
    def errors(self) -> list[str]:
        """One text for each loss."""
        return [each.text for each in self.losses]


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
        again: make a request once more, on a new connection, when the server closes a
            kept one before a byte of the answer, as RFC 9110 (9.2.2) allows.
        timeout: seconds, of each connect and each read.
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
        again: bool = False,
        timeout: float = 60.0,
        check: Check = is_200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._headers = dict(headers or {})
        self._port, self._pause, self._check = port, pause, check
        self._again, self._timeout = again, timeout
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
        connection = Connection(self._port, self._timeout)
        headers = self._headers
        if not keepalive:
            headers = {**headers, "Connection": "close"}
        while (path := self._next()) is not None:
            time.sleep(self._pause)
            self._ask(connection, path, headers)
            if not keepalive:
                connection.close()
        connection.close()

    def _ask(self, connection: Connection, path: str, headers: dict[str, str]) -> None:
        begun, kept = time.monotonic(), connection.sock is not None
        try:
            status, body = connection.ask(path, headers)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            how = connection.how(error)
            if kept and how == "reset" and self._again:
                with self._lock:
                    self.report.kept_closed += 1
                self._ask(connection, path, headers)
                return
            text = f"{path}: {type(error).__name__}: {error}"
            self._count("failed", kept, Loss(begun, time.monotonic(), how, kept, text))
            return
        if self._check(path, status, body):
            self._count("right", kept)
            return
        text = f"{path}: {status} {body[:80]!r}"
        self._count("wrong", kept, Loss(begun, time.monotonic(), "wrong", kept, text))

    def _count(self, what: str, kept: bool, loss: Loss | None = None) -> None:
        with self._lock:
            setattr(self.report, what, getattr(self.report, what) + 1)
            self.report.on_kept += kept
            if loss:
                self.report.losses.append(loss)


class Connection(http.client.HTTPConnection):
    """One that remembers how far a request has come."""

    def __init__(self, port: int, timeout: float) -> None:
        super().__init__("127.0.0.1", port, timeout=timeout)
        self._stage = "refused"

    def connect(self) -> None:
        self._stage = "refused"
        super().connect()

    def ask(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of one GET."""
        if self.sock is None:
            self.connect()
        self._stage = "reset"
        self.request("GET", path, headers=headers)
        answer = self.getresponse()
        self._stage = "cut"
        return answer.status, answer.read()

    def how(self, error: Exception) -> str:
        """What has become of the request, as in Loss."""
        if isinstance(error, TimeoutError):
            return "timeout"
        begun = isinstance(error, http.client.HTTPException)
        if begun and not isinstance(error, http.client.RemoteDisconnected):
            return "cut"  # a part of the head, or of the body
        return self._stage
