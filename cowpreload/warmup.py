"""Warm up: request paths in the master, in-process, before the fork.

Takes the WSGI or ASGI callable and `Settings`; gives a WarmupReport. A listed path that
raises, answers 500 or above, or does not answer in time stops the start with a
WarmupError; 3xx and 4xx warn. One that nobody has listed is dropped instead.
Must not open a socket; must leave no event loop or thread behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cowpreload.candidates import NO_TIME, Candidate, Tried
from cowpreload.deadline import Bounds, unsaid
from cowpreload.errors import WarmupError, fault, is_interrupt
from cowpreload.records import WarmupReport
from cowpreload.settings import Settings
from cowpreload.warmup_visits import Manner, visit


def warm_up(
    app: Callable[..., Any],
    settings: Settings,
    manner: Manner | None = None,
    paths: Sequence[str] | None = None,
    say: Callable[[str], None] = unsaid,
    told: Callable[[], bool] = lambda: False,
) -> WarmupReport:
    """Request each path `settings.warmup_repeat` times; main thread only.

    Args:
        app: the WSGI or ASGI callable.
        settings: those that begin with `warmup`.
        manner: how it is asked; None: as the settings say.
        paths: instead of those listed, where an application serves only some.
        say: logs a line, while a page takes long.
        told: whether the process was told to end: what a page raises then comes of
            that, as the cancellation of a task that awaits.

    Raises:
        WarmupError: a path raised, answered 500 or above, or took too long.
    """
    paths = settings.warmup_listed if paths is None else paths
    if not paths:
        return WarmupReport(0, ())
    manner = manner or Manner.of(app, settings)
    statuses: list[tuple[Candidate, int]] = []

    def answered(
        candidate: Candidate, status: int, error: BaseException | None
    ) -> bool:
        if error is not None and (isinstance(error, WarmupError) or told()):
            raise error
        if error is not None:
            raise WarmupError.raised(candidate.shown, error) from error
        statuses.append((candidate, status))
        return True

    listed = manner.each_way(Candidate(each) for each in paths)
    visit(
        app,
        [each for each in listed for _ in range(settings.warmup_repeat)],
        manner,
        Bounds(settings.warmup_timeout, say),
        answered,
    )
    best: dict[str, int] = {}
    for each in dict.fromkeys(listed):
        status = _worst([status for asked, status in statuses if asked == each], each)
        best[each.path] = min(best.get(each.path, status), status)
    warnings = []
    for path, status in best.items():
        if status >= 300:
            page = "an error page" if status >= 400 else "a redirect"
            warnings.append(
                f"cow: warm-up path={path} status={status}: warms {page}; "
                "give a path that answers 200, or set warmup-host"
            )
    return WarmupReport(len(statuses), tuple(warnings))


def _worst(answers: Sequence[int], asked: Candidate) -> int:
    """The status that says most of a page that was requested more than once.

    Raises:
        WarmupError: it failed.
    """
    status = max(answers)
    if status >= 500 or not min(answers):
        answer = status if min(answers) else "nothing"
        raise WarmupError(
            f"warmup={asked.shown}: answered {answer}; "
            "mend the page or leave the path out"
        )
    return status


def why_dropped(status: int, error: BaseException | None) -> str:
    """Why an answer is not worth a warm up, or ""."""
    if error is not None:
        return fault(error)
    if 200 <= status < 300:
        return ""
    return f"answered {status or 'nothing'}"


def warm_found(
    app: Callable[..., Any],
    survivors: Sequence[Candidate],
    settings: Settings,
    manner: Manner,
    seconds: float,
    say: Callable[[str], None],
    stopped: Callable[[], bool],
    page_seconds: float | None = None,
) -> tuple[list[Tried], int]:
    """Request what nobody has listed, after a trial; one that fails here is dropped.

    Args:
        seconds: what all of it may take; then the rest is left cold.
        stopped: whether a signal waits.
        page_seconds: of a master that serves: what a page may take. One that cannot be
            interrupted does not end it.

    Returns:
        What each candidate did, and the number of requests.

    Raises:
        Stopped: or whatever else the host raises to end the start.
    """
    tried: dict[Candidate, Tried] = {}
    requests = 0
    until = time.monotonic() + seconds

    def wanted() -> Iterator[Candidate]:
        # All of them once, then again: where the time is short, a first request brings
        # more than a second one.
        for _ in range(settings.warmup_repeat):
            for each in survivors:
                if each not in tried or not tried[each].dropped:
                    yield each

    def answered(
        candidate: Candidate, status: int, error: BaseException | None
    ) -> bool:
        nonlocal requests
        requests += 1
        dropped = why_dropped(status, error)
        tried[candidate] = Tried(candidate, status, dropped=dropped)
        return not stopped() and time.monotonic() < until

    serves = page_seconds is not None
    limit = min(settings.warmup_timeout, page_seconds or seconds)
    bounds = Bounds(limit, say, fatal=False, ends=not serves)
    why_cold = NO_TIME
    try:
        visit(app, wanted(), manner, bounds, answered)
    except BaseException as error:  # of a lifespan, or of the end of the loop
        if stopped() or is_interrupt(error):
            raise
        why_cold = why_dropped(0, error)
    for each in survivors:
        tried.setdefault(each, Tried(each, dropped=why_cold))
    return [tried[each] for each in survivors], requests
