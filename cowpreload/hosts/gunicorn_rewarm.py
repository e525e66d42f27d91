"""One warm up of a gunicorn master that serves: a trial, the requests, a new freeze.

Takes the arbiter and the pages; gives what was warmed. Everything that comes before a
first fork is done anew, in the same order: about a second of processor time on the
example site, in which the workers serve on and no worker is started. Must leave no
thread and no connection in the master, and lose no signal.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from gunicorn.arbiter import Arbiter

from cowpreload import _core, callbacks, collector, mending, writers
from cowpreload.audit import Descriptors, audit, descriptors
from cowpreload.candidates import Candidate, Shape
from cowpreload.closing import close_all
from cowpreload.deadline import can_interrupt
from cowpreload.hosts.auto import Automatic
from cowpreload.hosts.gunicorn_interface import interface_of, runs_lifespan, script_name
from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.gunicorn_stages import run_freeze, run_seal
from cowpreload.hosts.gunicorn_warmup import started_since
from cowpreload.hosts.laying import Laying
from cowpreload.settings import Settings
from cowpreload.units import MIB
from cowpreload.warmup_visits import Manner

# A page of the master's, and all of them, in seconds: what a signal may have to wait,
# and the end of a worker. The trial has as long again.
PAGE_SECONDS = 1.0
SECONDS = 5.0
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_HARMLESS = {
    *("accept", "accept-encoding", "accept-language", "user-agent"),
    *("x-forwarded-host", "x-forwarded-port", "x-forwarded-proto"),
}

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Rewarmed:
    """What was warmed; or nothing, and why.

    Attributes:
        line: one log line, without a newline.
        interrupted: whether a signal came: nothing is known of the pages.
    """

    pages: tuple[Shape, ...]
    line: str
    interrupted: bool = False


def rewarm(arbiter: Any, settings: Settings, pages: Sequence[Shape]) -> Rewarmed:
    """Try the pages in a child, request what survives here, freeze and seal anew."""
    if not can_interrupt():
        why = "the application uses SIGALRM, and nothing else ends a page that hangs"
        return Rewarmed((), f"cow: warmed anew pages=0: {why}")
    began = time.monotonic()
    log = Unfailing(arbiter.log)
    with _at_rest(arbiter) as told:
        before = descriptors()
        known = {each.line() for each in audit(before)}
        threads = set(threading.enumerate())
        try:
            warmed = _try_and_warm(_automatic(arbiter, settings, before, told), pages)
        finally:
            for line in _settle(before, known, settings.freeze == "on"):
                log.warning(line)
            started_since(threads)
        if told() or not warmed:
            why = "a signal came" if told() else "none survived the trial"
            return Rewarmed((), f"cow: warmed anew pages=0: {why}", told())
        # Code that is immortal already does not tell who holds it: it is not moved.
        laying = Laying(replace(settings, hot_code="off"), writers.remember)
        frozen = run_freeze(settings, laying, log)
        sealed = run_seal(settings, laying, log)
    return Rewarmed(
        tuple(each for each in pages if (each.path, each.host) in warmed),
        f"cow: warmed anew pages={len(warmed)} dropped={len(pages) - len(warmed)} "
        f"objects={frozen.objects} immortal={frozen.immortal.objects} "
        f"sealed={sealed.bytes // 1024}KiB heap={_core.heap_size() // MIB}MiB "
        f"seconds={time.monotonic() - began:.2f}",
    )


def _automatic(
    arbiter: Any, settings: Settings, before: Descriptors, told: Callable[[], bool]
) -> Automatic:
    cfg = arbiter.cfg
    app = arbiter.app.wsgi()
    manner = Manner.of(
        app,
        # Visitors chose these paths: they are requested with nobody's login.
        replace(settings, warmup_header=_harmless(settings.warmup_header)),
        script_name(),
        interface_of(cfg.worker_class),
        runs_lifespan(cfg),
    )
    # What visitors have requested is nobody's but the operator's, who asks for it.
    say = Unfailing(arbiter.log).debug
    return Automatic(app, settings, manner, before, say, told, seconds=SECONDS)


def _harmless(headers: Headers) -> Headers:
    """Those of cow-warmup-header that no login is known by."""
    return tuple(each for each in headers if each[0].lower() in _HARMLESS)


def _try_and_warm(automatic: Automatic, pages: Sequence[Shape]) -> set[tuple[str, str]]:
    """The path and host of each page that the master has requested."""
    candidates = [Candidate(each.path, each.host, "traffic") for each in pages]
    tried, note = automatic.trial(candidates)
    for each in tried:
        if each.dropped:
            automatic.say(f"cow: warmup path={each.candidate.path}: {each.dropped}")
    if note:
        automatic.say(f"cow: warmup: {note}")
    survivors = [
        each.candidate
        for each in tried
        if not each.dropped and each.seconds <= PAGE_SECONDS
    ]
    warmed, _ = automatic.in_master(survivors, PAGE_SECONDS)
    return {
        (each.candidate.path, each.candidate.host)
        for each in warmed
        if not each.dropped
    }


def _settle(before: Descriptors, known: set[str], frozen: bool) -> list[str]:
    """What comes before each fork, anew: close, mend, audit; lines on the faults.

    Args:
        before: the server's own descriptors.
        known: what the audit found before.
        frozen: whether the collector lists no inherited object. Executors and loops are
            looked for among all of them; a collection would copy the heap, and from
            3.14 on take what is immortal off its lists.
    """
    gc.collect()  # of what was loaded since, alone
    resume = collector.stop()
    if frozen:
        gc.unfreeze()
    try:
        faults = callbacks.run_before_again()
        faults += close_all()
    finally:
        try:
            # Whatever a callback raises: a worker with dead executors would hang.
            mending.prepare()
        finally:
            if frozen:
                gc.freeze()
            resume()
    time.sleep(0)  # gevent closes a descriptor at its loop's next turn: the trial's
    findings = [each.line() for each in audit(before)]
    return faults + [each for each in findings if each not in known]


@contextlib.contextmanager
def _at_rest(arbiter: Any) -> Iterator[Callable[[], bool]]:
    """Around what may take seconds: no other thread, and what came is not lost.

    Gives a function that says whether a signal waits; gunicorn obeys it when this is
    over.
    """
    # gunicorn ends this thread around forks; an application's code is as good a reason.
    stop = getattr(arbiter, "_stop_control_server", None)
    start = getattr(arbiter, "_start_control_server", None)
    came: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        before[number](number, frame)

    for number in Arbiter.SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):  # not one that the application ignores
            before[number] = handler
            signal.signal(number, note)
    if stop is not None and start is not None:
        stop()
    try:
        yield lambda: bool(came)
    finally:
        if stop is not None and start is not None and not set(came) & set(_STOPS):
            start()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.raise_signal(signal.SIGCHLD)  # the trial has taken those that came
