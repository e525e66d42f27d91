"""What the stages of `cowpreload try` hand on: frozen records, bytes and seconds.

Must not import a stage, read a clock or print.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Probed:
    """What loading the application once, in a process of its own, told.

    Attributes:
        interface: `WSGI` or `ASGI`.
        routes: paths of GET routes without a parameter, the likeliest first.
        note: why there are no more, or "".
        seconds: what loading took.
        worker_class: that plain gunicorn serves it with; "": an object of the
            user's configuration.
        cow_lines: the names and values by which gunicorn is given ours for it.
    """

    interface: str
    routes: tuple[str, ...] = ()
    note: str = ""
    seconds: float = 0.0
    worker_class: str = ""
    cow_lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Way:
    """One way to run the same application.

    Attributes:
        name: for tables; unique.
        host: `gunicorn` or `uwsgi`.
        cow: with cowpreload's worker class or plugin.
        preload: whether the master loads the application.
    """

    name: str
    host: str
    cow: bool
    preload: bool


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        app: as gunicorn takes it.
        interface: `WSGI` or `ASGI`.
        workers: as many as the user wants.
        counts: numbers of workers that are measured, ascending; with the user's.
        requests: to the server with the user's workers; each has the same part of it.
        paths: requested in turn.
        found: of `paths`, those that the user has not named.
        headers: of each request.
        pairs: blocks of requests that all ways serve in turn, for processor time.
        warmup: what the cow ways are given as cow-warmup.
        config: a gunicorn.conf.py of the user's, or "".
        ini: an ini of uWSGI of the user's, or "".
        worker_class: of plain gunicorn; "": what the user's configuration says.
        cow_lines: the names and values that make it ours.
    """

    app: str
    interface: str
    ways: tuple[Way, ...]
    workers: int
    counts: tuple[int, ...]
    requests: int
    paths: tuple[str, ...]
    found: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    pairs: int
    warmup: tuple[str, ...]
    config: str = ""
    ini: str = ""
    worker_class: str = ""
    cow_lines: tuple[tuple[str, str], ...] = ()

    def requests_of(self, workers: int) -> int:
        """How many requests a server with so many workers gets."""
        return max(1, round(self.requests * workers / self.workers))


@dataclass(frozen=True)
class Answer:
    """One answer of a server."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Difference:
    """A page that one way answers otherwise than plain workers do."""

    path: str
    what: str


@dataclass(frozen=True)
class Life:
    """One life of one server, after its requests; bytes.

    Attributes:
        private: of each worker.
        wrong: answers that did not come, or with a status that the page has not had.
    """

    workers: int
    requests: int
    private: tuple[int, ...]
    total_pss: int
    wrong: int


@dataclass(frozen=True)
class LogFacts:
    """What the log of a cow way told.

    Attributes:
        findings: of the fork-safety audit, a line each.
        heap: bytes that workers inherit; 0: nothing said so.
        immortal: objects that became so.
        warmed: requests of the warm-up.
        recycled: workers that were replaced over a limit.
    """

    findings: tuple[str, ...] = ()
    heap: int = 0
    immortal: int = 0
    warmed: int = 0
    recycled: int = 0


@dataclass(frozen=True)
class Why:
    """What `cowpreload why` said of one worker; shares are 0 to 1.

    Attributes:
        advice: sentences, the largest cause first.
        new: the share of its private memory that is new since the fork.
    """

    private: int
    new: float
    advice: tuple[str, ...]
    causes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Measured:
    """One way, measured.

    Attributes:
        lives: by number of workers, ascending.
        differences: to the answers of plain workers.
        cpu: the processor time of a request relative to plain workers', spread.
        cpu_ms: the same in milliseconds.
        error: why it could not be measured, with the end of the log; or "".
    """

    way: Way
    lives: tuple[Life, ...] = ()
    differences: tuple[Difference, ...] = ()
    log: LogFacts = LogFacts()
    cpu: Figures | None = None
    cpu_ms: Figures | None = None
    why: Why | None = None
    error: str = ""

    def at(self, workers: int) -> Life | None:
        """Its life with so many workers."""
        return next((each for each in self.lives if each.workers == workers), None)


@dataclass(frozen=True)
class Limited:
    """A server that ran with the advised limit.

    Attributes:
        limit: bytes, cow-max-private.
        highest: private bytes of its largest worker at the end.
        recycled: workers that were replaced over it.
    """

    way: str
    limit: int
    requests: int
    highest: int
    recycled: int


@dataclass(frozen=True)
class Room:
    """What all workers may take, in bytes, and where that is from, in words."""

    size: int
    source: str


@dataclass(frozen=True)
class Tried:
    """All that one run found.

    Attributes:
        statuses: of each path, as plain workers answer.
        uncompared: pages that differ from request to request in length.
        notes: sentences that the reader must know.
    """

    plan: Plan
    ways: tuple[Measured, ...]
    room: Room
    versions: Mapping[str, str]
    limited: tuple[Limited, ...] = ()
    statuses: tuple[tuple[str, int], ...] = ()
    uncompared: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    seconds: float = 0.0
