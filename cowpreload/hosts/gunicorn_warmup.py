"""The warm up on gunicorn: with its signals, its log and its words for a failure.

Takes the application and the settings; gives the WarmupReport. Runs before the sockets
are bound, or, without the start-up hook, right before the first fork.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cowpreload.audit import Descriptors
from cowpreload.deadline import UNWIND, end_within
from cowpreload.errors import CowError
from cowpreload.hosts.forks import FORKS
from cowpreload.hosts.gunicorn_interface import (
    interface_of,
    refuse_unfit,
    runs_lifespan,
    script_name,
)
from cowpreload.hosts.gunicorn_keeping import KEEPER
from cowpreload.hosts.gunicorn_signals import Waiting
from cowpreload.hosts.signing_in import SECONDS, signed_in_after_trial
from cowpreload.records import WarmupReport
from cowpreload.settings import Settings
from cowpreload.warmings import Measuring
from cowpreload.warmup import warm_up
from cowpreload.warmup_visits import Manner

if TYPE_CHECKING:
    from cowpreload.hosts.keeping import Keeping

# Threads that pages have started.
_left: set[threading.Thread] = set()


def started_since(before: set[threading.Thread]) -> None:
    """Pages have started what is here and was not `before`."""
    _left.update(set(threading.enumerate()) - before)


def bound_the_end() -> None:
    """In the master, at its end: Python waits there for threads that are no daemons,
    and for ever for one that hangs in a page. Without a warm up it has none of those.
    """
    if any(each.is_alive() and not each.daemon for each in _left):
        end_within(UNWIND)


def _explain(error: CowError, cfg: Any, log: Any) -> None:
    """The traceback of a page, and what gunicorn has not started yet."""
    cause = error.__cause__
    if cause is not None:
        log.error("cow: the warm up failed", exc_info=cause)
    if getattr(cfg, "dirty_apps", None):
        log.error(
            "cow: dirty_apps: gunicorn starts dirty workers after the warm up; let a "
            'page that needs them do without if environ["cowpreload.warmup"] is set, '
            "or leave it out"
        )


def _request(
    called: Any,
    cfg: Any,
    settings: Settings,
    log: Any,
    waiting: Waiting,
    before: Descriptors,
    keeping: Keeping | None,
) -> WarmupReport:
    """What is listed, then what is kept and found."""
    if not settings.warmup and keeping is None:
        return WarmupReport(0, ())
    manner = Manner.of(
        called,
        settings,
        script_name(cfg.worker_class),
        interface_of(cfg.worker_class),
        runs_lifespan(cfg),
    )
    loaded = set(threading.enumerate())
    measuring = Measuring()
    sources = ["list" for _ in set(settings.warmup_listed)]
    within = min(settings.warmup_timeout, SECONDS)
    user = signed_in_after_trial(
        settings.warmup_user, log.warning, within, FORKS, waiting.waits
    )
    with user as cookie:
        manner = replace(manner, cookie=cookie)
        report = warm_up(called, settings, manner, say=log.warning, told=waiting.told)
        if settings.learns:
            from cowpreload.hosts.auto import Automatic  # it imports what few need

            kept = keeping.found() if keeping is not None else None
            stopped = waiting.waits
            found = Automatic(
                called, settings, manner, before, FORKS, log.info, stopped, kept=kept
            ).warm()
            done = found.warmed()
            sources += [each.source for each in done]
            report = replace(
                report,
                requests=report.requests + found.requests,
                paths=(*settings.warmup_listed, *(each.path for each in done)),
            )
    started_since(loaded)
    return replace(report, warming=measuring.of(sources, report.requests))


def warm(
    app: Any,
    settings: Settings,
    log: Any,
    waiting: Waiting,
    before: Descriptors,
    loaded: Callable[[], None],
) -> WarmupReport:
    """Load the application, call `loaded`, warm it up; `before` was open before.

    Raises:
        RuntimeError: a path failed, and the log has its traceback; or the worker class
            cannot serve the application.
        StopIteration: the master was told to end, as gunicorn itself says it.
    """
    try:
        with waiting.taken():
            keeping = KEEPER.begin(settings, app, log)
            called = app.wsgi()
            loaded()
            spoken = interface_of(app.cfg.worker_class)
            refuse_unfit(called, spoken, app.cfg.worker_class_str)
            return _request(called, app.cfg, settings, log, waiting, before, keeping)
    except BaseException as error:
        if waiting.stop:  # whatever the application has made of it
            log.info("cow: told to end in the warm up")
            # Threads that the page left may keep Python's exit waiting.
            end_within(app.cfg.graceful_timeout)
            raise StopIteration from error
        if not isinstance(error, CowError):
            raise
        _explain(error, app.cfg, log)
        raise RuntimeError(f"cow: {error}") from error
