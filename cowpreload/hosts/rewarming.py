"""One warm up of a master that serves: a trial, the requests, a new freeze.

Takes the master and the pages; gives what was warmed. Everything that comes before a
first fork is done anew, in the same order: about a second of processor time on the
example site, in which the workers serve on and no worker is started. Must leave no
thread and no connection in the master, and lose no signal.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cowpreload import _core, collector, mending, writers
from cowpreload.audit import Descriptors, audit, descriptors
from cowpreload.candidates import Candidate, Shape
from cowpreload.deadline import can_interrupt
from cowpreload.event_log import tell
from cowpreload.freezing import freeze, leave_mortal
from cowpreload.hosts import closings
from cowpreload.hosts.auto import Automatic
from cowpreload.hosts.serving import Serving
from cowpreload.hosts.signing_in import signed_in_after_trial
from cowpreload.hosts.stages import run_merge
from cowpreload.lifecycle import WarmedAnew
from cowpreload.records import FreezeReport, SealReport
from cowpreload.sealing import seal
from cowpreload.settings import Settings
from cowpreload.warmed import NOT_WARMED, Warming
from cowpreload.warmings import Measuring

# A page of the master's, and all of them, in seconds: what a signal may have to wait,
# and the end of a worker. The trial has as long again.
PAGE_SECONDS = 1.0
SECONDS = 5.0


@dataclass(frozen=True)
class Rewarmed:
    """What was warmed; or nothing, and why.

    Attributes:
        fact: what is said of it.
        warming: for the board.
        interrupted: whether a signal came: nothing is known of the pages.
        frozen: for the board, with bytes: of the heap that a fork inherits.
    """

    pages: tuple[Shape, ...]
    fact: WarmedAnew
    interrupted: bool = False
    warming: Warming = NOT_WARMED
    frozen: FreezeReport | None = None


def rewarm(master: Serving, settings: Settings, pages: Sequence[Shape]) -> Rewarmed:
    """Try the pages in a child, request what survives here, freeze and seal anew."""
    if not can_interrupt():
        why = "the application uses SIGALRM, and nothing else ends a page that hangs"
        return Rewarmed((), WarmedAnew(why_not=why))
    measuring = Measuring()
    with master.at_rest() as told:
        before = descriptors()
        known = {each.line() for each in audit(before, at_fork=master.at_fork)}
        try:
            # The operator's decision, whatever paths visitors choose.
            user = signed_in_after_trial(
                settings.warmup_user,
                master.warn,
                PAGE_SECONDS,
                master.forks,
                told,
            )
            with user as cookie:
                warmed = _warm(master, settings, before, told, pages, cookie)
        finally:
            # A signal has waited for a page already.
            within = PAGE_SECONDS / 2 if told() else PAGE_SECONDS
            frozen = settings.freeze == "on"
            for line in _settle(master, before, known, frozen, within):
                master.warn(line)
        if told() or not warmed:
            why = "a signal came" if told() else "none survived the trial"
            return Rewarmed((), WarmedAnew(why_not=why), told())
        report = _freeze(master, settings)
        sealed = _seal(master, settings)
        run_merge(settings, master.say)
        writers.flush_shared()  # of what pages have written; uWSGI forks without it
    warming = measuring.of("traffic" for _ in warmed)
    heap = _core.heap_size()
    return Rewarmed(
        tuple(each for each in pages if (each.path, each.host) in warmed),
        WarmedAnew(
            pages=len(warmed),
            dropped=len(pages) - len(warmed),
            objects=report.objects,
            immortal=report.immortal.objects,
            sealed=sealed.bytes,
            heap=heap,
            seconds=warming.seconds,
        ),
        warming=warming,
        frozen=replace(report, bytes=heap),
    )


def _warm(
    master: Serving,
    settings: Settings,
    before: Descriptors,
    told: Callable[[], bool],
    pages: Sequence[Shape],
    cookie: str,
) -> set[tuple[str, str]]:
    """The path and host of each page that the master has requested."""
    parts = master.parts(settings)
    warmed = set()
    for part in parts:
        automatic = Automatic(
            part.app,
            settings,
            replace(part.manner, cookie=cookie),
            before,
            master.forks,
            master.say_of_page,
            told,
            at_fork=master.at_fork,
            seconds=SECONDS / len(parts),
            page_seconds=PAGE_SECONDS,
            warn=master.warn,
        )
        own = [each for each in pages if part.serves(each.path)]
        warmed |= _try_and_warm(automatic, own)
    return warmed


def _try_and_warm(automatic: Automatic, pages: Sequence[Shape]) -> set[tuple[str, str]]:
    """The path and host of each page that the master has requested."""
    if not pages:
        return set()
    candidates = [Candidate(each.path, each.host, "traffic") for each in pages]
    tried, note = automatic.trial(candidates)
    for each in tried:
        if each.dropped:
            automatic.say(f"cow: warmup path={each.candidate.shown}: {each.dropped}")
    if note:
        automatic.say(f"cow: warmup: {note}")
    survivors = [
        each.candidate
        for each in tried
        if not each.dropped and each.seconds <= PAGE_SECONDS
    ]
    warmed, _ = automatic.in_master(survivors)
    return {
        (each.candidate.path, each.candidate.host)
        for each in warmed
        if not each.dropped
    }


def _settle(
    master: Serving,
    before: Descriptors,
    known: set[str],
    frozen: bool,
    within: float,
) -> list[str]:
    """What comes before each fork, anew: close, mend, audit; lines on what stays open.

    Args:
        before: the server's own descriptors.
        known: what the audit found before.
        frozen: whether the collector lists no inherited object. Executors and loops are
            looked for among all of them; a collection would copy the heap, and from
            3.14 on take what is immortal off its lists.
        within: seconds, for the callbacks, and for what is closed.
    """
    gc.collect()  # of what was loaded since, alone
    resume = collector.stop()
    if frozen:
        gc.unfreeze()
    try:
        bounds = closings.bounded(within, master.warn)
        faults = closings.call_again(bounds) + closings.close(bounds)
    finally:
        try:
            # Whatever a callback raises: a worker with dead executors would hang.
            mending.prepare()
        finally:
            if frozen:
                gc.freeze()
            resume()
    time.sleep(0)  # gevent closes a descriptor at its loop's next turn: the trial's
    for finding in audit(before, at_fork=master.at_fork):
        if finding.line() not in known:
            tell(finding, master.warn)
    return faults


def _freeze(master: Serving, settings: Settings) -> FreezeReport:
    """All that is loaded by now; what was frozen before, too.

    Hot code is not laid: what is immortal already does not tell who holds it.
    """
    if settings.freeze == "off":  # since a reload
        leave_mortal(writers.remember)
        return FreezeReport(collector.objects(), 0, 0.0)
    report = freeze(master.walk(settings), writers.remember)
    for line in report.fault_lines():
        master.warn(line)
    return report


def _seal(master: Serving, settings: Settings) -> SealReport:
    if settings.freeze == "off":
        return SealReport()
    report = seal(settings.seal == "on")
    for line in report.left_lines():
        master.say(line)
    return report
