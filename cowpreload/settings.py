"""Every setting, declared once.

Gives the frozen `Settings` and DECLARED, from which the gunicorn options, the uWSGI
option table, the environment names, docs/settings.md and the checks derive. What a
host was given becomes Settings in settings_given.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from cowpreload.budget import Budget
from cowpreload.kinds import (
    AUTO,
    BUDGET,
    CHOICE,
    COUNT,
    GUNICORN,
    HEADERS,
    PAGES,
    PATHS,
    SECONDS,
    SIZE,
    TEXT,
    Declared,
)
from cowpreload.kinds import setting as _setting
from cowpreload.kinds import web_setting as _web

# Every gunicorn command imports this module, whatever its class; making the records
# is half of what that costs it.
if TYPE_CHECKING:
    from cowpreload.records import Limits


@dataclass(frozen=True)
class Settings:
    """The effective settings; sizes in bytes, durations in seconds, None is unset."""

    max_private: int | None = _setting(
        SIZE,
        None,
        "recycle a worker whose private memory passes this, after its requests",
        why="only the operator knows what a worker may cost",
    )
    max_private_hard: int | None = _setting(
        SIZE,
        None,
        "kill a worker whose private memory passes this, even in a request",
        why="as above; for the request that would take the machine down",
    )
    max_growth: int | None = _setting(
        SIZE,
        None,
        "recycle a worker that grew this far over its reading when it became ready",
        why="as above; for sites whose workers differ in size",
    )
    budget: Budget = _web(  # noqa: RUF009 - frozen, as all defaults here
        BUDGET,
        Budget(),
        "PSS of master and workers together, a size or a part of the memory there is "
        "(80%); past it the largest worker is recycled; auto: 80% of a control group",
        why="measured: auto recycled 9 a minute where a site needs 82% of its group",
    )
    strikes: int = _setting(
        COUNT,
        3,
        "readings in a row over a soft limit before it acts",
        why="one large request is no leak; GitLab's watchdog waits for five",
        minimum=1,
    )
    min_lifetime: float = _setting(
        SECONDS,
        10.0,
        "spare a worker this long after it became ready; doubles while in vain",
        why="what uWSGI gives its own reload limits",
        minimum=0,
    )
    jitter: float = _setting(
        SECONDS,
        3.0,
        "most that a worker's recycling is delayed, at random",
        why="workers born together reach a limit together",
        minimum=0,
    )
    max_recycling: int | None = _setting(
        COUNT,
        None,
        "workers that may leave at once; unset: a tenth of them, at least one",
        why="capacity drops by at most a tenth",
        minimum=1,
    )
    pressure: str = _setting(
        CHOICE,
        "on",
        "when memory runs short, a grown worker that serves nothing leaves",
        why="measured: it loses no request; each time, the slot waits twice as long",
        choices=("on", "off"),
    )
    check_interval: float = _setting(
        SECONDS,
        1.0,
        "time between two looks at a worker's memory",
        why="a hung worker can take a GiB a second; a look costs 0.02 ms",
        minimum=0.05,
    )
    warmup: tuple[str, ...] = _web(
        PAGES,
        (),
        "path to request in the master before the fork; auto: the application's "
        "routes, after a trial in a child; repeatable",
        why="only the operator knows whether all pages are safe to request",
    )
    warmup_skip: tuple[str, ...] = _web(
        PATHS,
        (),
        "path that warmup=auto leaves out, with all below it; repeatable",
        why="what changes something when it is read has no name that all know",
    )
    warmup_file: str | None = _web(
        TEXT,
        None,
        "file, on a local disk, that keeps which pages visitors request; they warm the "
        "next start, after a trial in a child",
        why="paths can tell of people; only the operator knows where they may lie",
    )
    warmup_repeat: int = _web(
        COUNT,
        2,
        "how often each warm-up path is requested",
        why="measured: the first saves 5 MB a worker, all after the second 0.3 MB",
        minimum=1,
    )
    warmup_host: str | None = _web(
        TEXT,
        None,
        "Host header of warm-up requests; unset: one that Django accepts",
        why="a refused host warms an error page",
    )
    warmup_header: tuple[tuple[str, str], ...] = _web(
        HEADERS,
        (),
        "header of warm-up requests, `Name: value`, a Cookie too; repeatable",
        why="pages behind a login need one; only names are logged",
    )
    warmup_user: str | None = _web(
        TEXT,
        None,
        "Django: request each warm-up page as this user, too; logged in for that alone",
        why="only the operator knows a user who may look and change nothing",
    )
    warmup_private: str = _web(
        CHOICE,
        "off",
        "warmup=auto and warmup-file learn from requests with a login, too: path, host "
        "and count",
        why="a path may tell of a person",
        choices=("on", "off"),
    )
    warmup_timeout: float = _web(
        SECONDS,
        30.0,
        "a warm-up request that takes longer ends the start, with a traceback; of "
        "warmup=auto, it is left out",
        why="what gunicorn gives a request of its sync worker",
        minimum=0.1,
    )
    warmup_worth: int = _web(
        SIZE,
        16 << 20,
        "warmup=auto warms up anew, from traffic, where all workers could save this",
        why="measured: half of what workers grow by is saved; it replaces all of them",
    )
    fork_safety: str = _setting(
        CHOICE,
        "warn",
        "report what does not survive the fork; strict: refuse to start",
        why="a site that works today must not stop to start",
        choices=("warn", "strict", "off"),
    )
    gc: str = _setting(
        CHOICE,
        "on",
        "cyclic collector in workers; off: set_threshold(0)",
        why="it skips the frozen heap; without it, cycles grow until a limit acts",
        choices=("on", "off"),
    )
    loading_gc: str = _web(
        CHOICE,
        "on",
        "cyclic collector while the application is loaded",
        why="measured: off saves 0.3 s of loading and no memory",
        choices=("on", "off"),
    )
    freeze: str = _setting(
        CHOICE,
        "on",
        "collect and freeze the loaded heap before the fork",
        why="off is there for comparison only",
        choices=("on", "off"),
    )
    immortal: str = _setting(
        CHOICE,
        "auto",
        "make the loaded heap immortal: reading it copies nothing; auto: from 3.12 on",
        why="measured: without it, workers copy most of what they read",
        choices=("auto", "on", "off"),
    )
    seal: str = _setting(
        CHOICE,
        "on",
        "fill the holes between inherited objects before the fork",
        why="measured: young objects in them copy 1.9 MiB a worker; filling takes 1 ms",
        choices=("on", "off"),
    )
    merge: str = _setting(
        CHOICE,
        "off",
        "copies of what workers inherit that are equal again; kernel: merged by the "
        "kernel (KSM); self: given back by each worker, of one thread",
        why="needs a machine whose KSM is on; from 3.12 on there is little to merge",
        choices=("off", "kernel", "self"),
    )
    hot_code: str = _setting(
        CHOICE,
        "on",
        "lay code that the warm-up has run side by side; needs cow-seal",
        why="measured: 1.3 MiB less a worker of the example site; takes 0.1 s",
        choices=("on", "off"),
    )
    exit: str = _web(
        CHOICE,
        "fast",
        "fast: exit handlers, flush, os._exit; normal: the whole finalization",
        why="measured: finalization copies 165 MB a worker, this 0.4",
        choices=("fast", "normal"),
    )
    event_log: str | None = _setting(
        TEXT,
        None,
        "file that events are appended to, a JSON object a line (docs/metrics.md)",
        why="only the operator knows who reads it",
    )
    worker: str | None = _setting(
        TEXT,
        None,
        "worker class to run under worker_class=cow, by any name that gunicorn takes",
        why="`cow` is gunicorn's sync worker, or gthread with --threads",
        hosts=(GUNICORN,),
    )

    @property
    def warmup_listed(self) -> tuple[str, ...]:
        """The warm-up paths that the operator has named."""
        return tuple(each for each in self.warmup if each != AUTO)

    @property
    def warmup_auto(self) -> bool:
        """Whether paths are to be found, too."""
        return AUTO in self.warmup

    @property
    def learns(self) -> bool:
        """Whether anybody asks for what visitors request."""
        return self.warmup_auto or self.warmup_file is not None

    def limits(self, workers: int, graceful: float) -> Limits:
        """The part that a verdict is made from, for a server of `workers`.

        Args:
            workers: how many the host runs.
            graceful: seconds that the host gives a worker to leave in; 0: no end.
        """
        from cowpreload.records import Limits

        return Limits(
            max_private=self.max_private or 0,
            max_private_hard=self.max_private_hard or 0,
            max_growth=self.max_growth or 0,
            min_lifetime=self.min_lifetime,
            interval=self.check_interval,
            strikes=self.strikes,
            max_recycling=self.max_recycling or max(1, workers // 10),
            graceful=graceful,
            pressure=self.pressure == "on",
        )


DECLARED: Final = tuple(
    Declared(attribute=each.name, default=each.default, **each.metadata)
    for each in fields(Settings)
)


def declared_on(host: str) -> tuple[Declared, ...]:
    """The settings that exist on GUNICORN, UWSGI or CELERY."""
    return tuple(each for each in DECLARED if host in each.hosts)
