"""What happens to a server and its workers: records with a log line and an event.

Frozen; sizes in bytes, times in seconds. Pure: must not read a clock or print. What the
stages before the fork report is in records.py.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from cowpreload._version import __version__
from cowpreload.events import Event, event, whole
from cowpreload.settings import Settings, declared_on
from cowpreload.units import MIB
from cowpreload.warmed import Warming


def _texts(settings: Settings, host: str) -> Mapping[str, str]:
    """What the line of the settings shows, by name: no secret is in it."""
    return {
        each.key: each.show(getattr(settings, each.attribute))
        for each in declared_on(host)
    }


def _line(settings: Settings, host: str) -> str:
    shown = " ".join(f"{key}={text}" for key, text in _texts(settings, host).items())
    return f"cow: settings {shown}"


@dataclass(frozen=True)
class Start:
    """The settings are read.

    Attributes:
        host: kinds.GUNICORN or kinds.UWSGI.
        version: the host's; "": not known.
    """

    settings: Settings
    host: str
    version: str = ""

    def line(self) -> str:
        """The effective settings."""
        return _line(self.settings, self.host)

    def event(self) -> Event:
        """Of the kind `start`."""
        return event(
            "start",
            host=self.host,
            host_version=self.version or None,
            python_version=".".join(map(str, sys.version_info[:3])),
            cowpreload_version=__version__,
            settings=_texts(self.settings, self.host),
        )


@dataclass(frozen=True)
class Changed:
    """A reload has changed the settings of a server of `host`."""

    settings: Settings
    host: str

    def line(self) -> str:
        """The effective settings."""
        return _line(self.settings, self.host)

    def event(self) -> Event:
        """Of the kind `settings`."""
        return event(
            "settings", host=self.host, settings=_texts(self.settings, self.host)
        )


def warm_up(warming: Warming) -> Event:
    """The event of the start's warm up; the log has lines on its pages."""
    return event(
        "warm_up",
        pages=dict(warming.pages),
        requests=warming.requests,
        seconds=whole(warming.seconds),
        grew_bytes=warming.grew,
    )


@dataclass(frozen=True)
class NewWorker:
    """A worker can serve.

    Attributes:
        private, shared: its memory then.
        boot: from its slot's filling until it could serve.
    """

    worker: int
    generation: int
    pid: int
    private: int
    shared: int
    boot: float

    def line(self) -> str:
        """For a log at the debug level: hosts say that they start a worker."""
        return (
            f"cow: worker={self.worker} gen={self.generation} pid={self.pid} ready "
            f"private={self.private // MIB}MiB boot={self.boot:.2f}s"
        )

    def event(self) -> Event:
        """Of the kind `new_worker`."""
        return event(
            "new_worker",
            worker=self.worker,
            generation=self.generation,
            pid=self.pid,
            private_bytes=self.private,
            shared_bytes=self.shared,
            boot_seconds=whole(self.boot),
        )


_LIMITS = {
    "max-growth": "growth-limit",
    "max-private-hard": "hard-limit",
    "budget": "budget",
    "room": "room",
}
# The reasons that are no limit of the worker's.
RENEWED, ROOM, PRESSURE = "renewed", "room", "pressure"
_NO_LIMITS = (RENEWED, ROOM, PRESSURE)


@dataclass(frozen=True)
class Recycling:
    """A worker was told to go.

    Attributes:
        action: `recycled`, `killed`, or `unheeded`: it was told, and is still there.
        reason: the setting whose limit was passed, `unheeded`, RENEWED, ROOM: little
            memory is left to all, or PRESSURE: processes wait for memory.
        private: what the worker had then.
        limit: that it has passed; of ROOM, what was left; of PRESSURE, per mille of
            the time in which a process waited; of no meaning where it is RENEWED.
        total: of the whole server, where the limit is its budget; 0: it is not.
        age: since it was forked.
        leaving: since it was first told; 0: just now.
        missed: decisions on its slot since the last one that was taken.
    """

    worker: int
    generation: int
    pid: int
    action: str
    reason: str
    private: int
    limit: int
    age: float
    leaving: float = 0.0
    missed: int = 0
    total: int = 0

    def line(self) -> str:
        """One log line, without a newline."""
        limit = RENEWED
        if self.reason == PRESSURE:
            limit = f"pressure=some:{self.limit / 10:.1f}%"
        elif self.reason != RENEWED:
            name = _LIMITS.get(self.reason, "limit")
            limit = f"{name}={self.limit // MIB}MiB"
        if self.total:
            limit += f" total={self.total // MIB}MiB"
        leaving = f" leaving={int(self.leaving)}s" if self.leaving else ""
        return (
            f"cow: worker={self.worker} gen={self.generation} pid={self.pid} "
            f"{self.action} private={self.private // MIB}MiB {limit} "
            f"age={int(self.age)}s{leaving}"
        )

    def event(self) -> Event:
        """Of the kind `recycling`."""
        return event(
            "recycling",
            worker=self.worker,
            generation=self.generation,
            pid=self.pid,
            action=self.action,
            reason=self.reason,
            private_bytes=self.private,
            limit_bytes=None if self.reason in _NO_LIMITS else self.limit,
            total_bytes=self.total or None,
            left_bytes=self.limit if self.reason == ROOM else None,
            stalled_share=self.limit / 1000 if self.reason == PRESSURE else None,
            age_seconds=whole(self.age),
            leaving_seconds=whole(self.leaving) if self.leaving else None,
            missed=self.missed,
        )


@dataclass(frozen=True)
class WarmedAnew:
    """The master has warmed up from traffic, or tried to.

    Attributes:
        pages: that were warmed.
        dropped: that failed.
        objects, immortal, sealed, heap: as PreloadReport has them.
        seconds: that the master was busy.
        why_not: why no page was, or "".
    """

    pages: int = 0
    dropped: int = 0
    objects: int = 0
    immortal: int = 0
    sealed: int = 0
    heap: int = 0
    seconds: float = 0.0
    why_not: str = ""

    def line(self) -> str:
        """One log line, without a newline."""
        if self.why_not:
            return f"cow: warmed anew pages=0: {self.why_not}"
        return (
            f"cow: warmed anew pages={self.pages} dropped={self.dropped} "
            f"objects={self.objects} immortal={self.immortal} "
            f"sealed={self.sealed // 1024}KiB heap={self.heap // MIB}MiB "
            f"seconds={self.seconds:.2f}"
        )

    def event(self) -> Event:
        """Of the kind `warm_up_anew`."""
        return event(
            "warm_up_anew",
            objects=self.objects,
            immortal_objects=self.immortal,
            sealed_bytes=self.sealed,
            inherited_bytes=self.heap,
            pages=self.pages,
            dropped=self.dropped,
            seconds=whole(self.seconds),
            reason=self.why_not or None,
        )


@dataclass(frozen=True)
class Judged:
    """The first worker of a warmer heap has grown by `grown`; the one before it by
    `before`. `confirmed`: the others are replaced, too."""

    worker: int
    grown: int
    before: int
    confirmed: bool

    def line(self) -> str:
        """One log line, without a newline."""
        then = "the others follow" if self.confirmed else "the others stay"
        return (
            f"cow: warmed anew worker={self.worker} grew={self.grown // MIB}MiB "
            f"before={self.before // MIB}MiB: {then}"
        )

    def event(self) -> Event:
        """Of the kind `warm_up_judged`."""
        return event(
            "warm_up_judged",
            worker=self.worker,
            grown_bytes=self.grown,
            before_bytes=self.before,
            confirmed=self.confirmed,
        )
