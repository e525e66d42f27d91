"""Pages that nobody has listed: find, try in a child, warm with what survived.

Takes an application in its master, on either host or none, for `cow-warmup = auto` and
`cow-warmup-file`; gives an AutoReport, with what is to be said of it. Whatever fails
here leaves pages cold and ends no start. Must not import the native core: uWSGI may
give an application an interpreter of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cowpreload import callbacks
from cowpreload.audit import Descriptors, audit, descriptors
from cowpreload.candidates import Answered, AutoReport, Candidate, Found, Tried
from cowpreload.closing import close_all
from cowpreload.deadline import Bounds, unsaid
from cowpreload.errors import is_interrupt, said
from cowpreload.forks import Forks
from cowpreload.freezing import thaw
from cowpreload.hosts import children, closings
from cowpreload.routes import MOST, find
from cowpreload.settings import Settings
from cowpreload.trial import Limits, Trial
from cowpreload.trial_child import Work
from cowpreload.warmup import warm_found, why_dropped
from cowpreload.warmup_visits import Manner, visit

# What the trial may take, in seconds, and the master after it. A start that takes
# longer than half a minute is ended by some supervisors.
SECONDS = 20.0


@dataclass(frozen=True)
class Automatic:
    """How one application is warmed by what is found of it.

    Attributes:
        manner: how it is asked.
        before: descriptors() of a moment before it was loaded.
        forks: of the host.
        say: logs a line on a page.
        warn: logs a line on what costs many pages, where nobody reads those.
        stopped: whether a signal waits that should not wait for pages.
        serves: whether a path is this application's.
        at_fork: whether the host's forks call what os.register_at_fork() was given.
        seconds: what the trial may take, and the master after it.
        kept: what a warm-up file has, where there is one.
        page_seconds: of a master that serves: what a page may take in it.
    """

    app: Callable[..., Any]
    settings: Settings
    manner: Manner
    before: Descriptors
    forks: Forks
    say: Callable[[str], None] = unsaid
    stopped: Callable[[], bool] = children.never
    serves: Callable[[str], bool] = lambda path: True
    at_fork: bool = True
    seconds: float = SECONDS
    kept: Found | None = None
    page_seconds: float | None = None
    warn: Callable[[str], None] = unsaid

    def sources(self) -> dict[str, Found]:
        """What may be worth a warm up, by where it comes from, best first."""
        settings, found = self.settings, {}
        known = list(settings.warmup_listed)
        if self.kept is not None:
            found["file"] = self._ours(self.kept, known)
            known += [each.path for each in found["file"].candidates]
        if settings.warmup_auto:
            most = MOST - (len(known) - len(settings.warmup_listed))
            skip = settings.warmup_skip
            routes = find(self.app, self.manner.prefix, skip, known, most)
            found["route"] = self._ours(routes, known)
        return found

    def _ours(self, found: Found, known: Sequence[str]) -> Found:
        """Those of this application, but for what is warmed anyway."""
        return Found(
            tuple(
                each
                for each in found.candidates
                if self.serves(each.path) and each.path not in known
            ),
            tuple(each for each in found.left_out if self.serves(each[0])),
            found.note,
        )

    def candidates(self) -> Found:
        """All of it."""
        parts = self.sources().values()
        return Found(
            tuple(each for part in parts for each in part.candidates),
            tuple(each for part in parts for each in part.left_out),
            "; ".join(part.note for part in parts if part.note),
        )

    def trial(self, candidates: Iterable[Candidate]) -> tuple[list[Tried], str]:
        """What each did in a child, each way, and why not all were tried, or "".

        The child is a worker in all that it may rely on: what is not to be shared is
        closed before the fork, and `after_fork` callbacks run in it.
        """
        known = self._close()
        limits = Limits(self.settings.warmup_timeout, self.seconds)
        with children.forking():
            trial = Trial(self._work(known), limits, self.stopped, self.forks)
            trial.over(self.manner.each_way(candidates))
        for fault in trial.faults:
            self.warn(f"cow: warmup trial: {fault}")
        return trial.tried, trial.note

    def _close(self) -> set[str]:
        """Close what the child must not share; lines on what is no candidate's.

        The application's callbacks only where something is open: some close for good
        what `after_fork` makes anew, and pages in the master would miss it.
        """
        thaw()
        bounds = self._closing()
        faults = closings.close(bounds)
        known: set[str] = set()
        if audit(self.before, at_fork=self.at_fork):
            callbacks.run_before()
            faults += closings.close(bounds)
            left = audit(descriptors(), at_fork=self.at_fork)
            known = {each.line() for each in left}
        for fault in faults:
            self.say(fault)
        return known

    def _closing(self) -> Bounds:
        """What is called unasked may take as long as a page."""
        seconds = self.page_seconds or self.seconds
        return closings.bounded(min(self.settings.warmup_timeout, seconds), self.say)

    def _work(self, known: set[str]) -> Work:
        before: list[Descriptors] = []
        # A callback may wait for a thread, which a child does not have.
        alone = threading.active_count() == 1

        def begin() -> None:
            children.begin()
            callbacks.run_after()
            before.append(descriptors())

        def request(candidates: Iterable[Candidate], answered: Answered) -> None:
            bounds = Bounds(None, unsaid)
            visit(self.app, candidates, self.manner, bounds, answered)

        def left() -> list[str]:
            callbacks.run_before_again()
            callbacks.run_before()
            close_all()
            findings = audit(before[0], at_fork=self.at_fork)
            return [
                f"{each.what} {each.where}"
                for each in findings
                if each.line() not in known
            ]

        def again() -> None:
            if alone:
                callbacks.run_before_again()
            close_all()

        seconds = 2 * self.seconds
        return Work(begin, request, why_dropped, close_all, left, seconds, again)

    def in_master(self, survivors: Sequence[Candidate]) -> tuple[list[Tried], int]:
        """What each survivor of the trial did here, and the number of requests."""
        if not survivors or self.stopped():
            return [], 0
        return warm_found(
            self.app,
            survivors,
            self.settings,
            self.manner,
            self.seconds,
            self.say,
            self.stopped,
            self.page_seconds,
        )

    def warm(self) -> AutoReport:
        """Find, try, and request in the master what survived."""
        began = time.monotonic()
        try:
            report = self._warm(began)
        except BaseException as error:
            if self.stopped() or is_interrupt(error):
                raise
            report = AutoReport((), {}, 0, time.monotonic() - began, said(error))
        for line in report.lines():
            self.say(line)
        return report

    def _warm(self, began: float) -> AutoReport:
        sources = self.sources()
        candidates = [each for part in sources.values() for each in part.candidates]
        left_out = {name: len(part.left_out) for name, part in sources.items()}
        notes = [part.note for part in sources.values() if part.note]
        report = partial(AutoReport, left_out=left_out)
        if not candidates:
            seconds = time.monotonic() - began
            return report((), requests=0, seconds=seconds, note="; ".join(notes))
        tried, note = self.trial(candidates)
        survivors = [each.candidate for each in tried if not each.dropped]
        warmed, requests = self.in_master(survivors)
        if warmed:
            for fault in closings.call_again(self._closing()):
                self.say(fault)
        final = {each.candidate: each for each in (*tried, *warmed)}
        return report(
            tuple(final[each.candidate] for each in tried),
            requests=requests,
            seconds=time.monotonic() - began,
            note="; ".join([note] if note else notes),
        )
