"""The stages right before the first fork, each with what it logs: one process, one log.

Takes settings and the host's log; gives each stage's report. What fails here is said,
and the server serves on; whether a strict audit ends the start is for the host.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cowpreload import _core, collector, freezes, healing, merging, warmings, writers
from cowpreload.audit import Descriptors, audit
from cowpreload.board import Board
from cowpreload.errors import NativeError
from cowpreload.event_log import EVENT_LOG, tell
from cowpreload.freezing import freeze, leave_mortal
from cowpreload.hosts.laying import Laying
from cowpreload.hosts.unasked import unasked
from cowpreload.immortal import plan
from cowpreload.lifecycle import warm_up
from cowpreload.records import FreezeReport, PreloadReport, SealReport
from cowpreload.sealing import seal
from cowpreload.settings import Settings
from cowpreload.warmed import Warming


def make_board(host: str, warming: Warming, log: Any) -> Board | None:
    """The board of this server, on it what was warmed; None: no shared memory.

    Args:
        host: its name and version, for reports.
    """
    try:
        board = Board.create(host)
    except NativeError as error:
        log.error("cow: no board (%s): serving on without limits", error)
        return None
    if board.hidden:
        log.error(board.hidden)
    try:
        _core.take_reading()
    except NativeError as error:
        log.error("cow: memory unreadable (%s): serving on without limits", error)
    if warming.pages:
        EVENT_LOG.write(partial(warm_up, warming))
    with unasked("record of the warm up", log.exception):
        warmings.add(board, warming)
    return board


def look_for_findings(before: Descriptors, settings: Settings, log: Any) -> int:
    """How many there are; `before` is the host's and not the application's."""
    if settings.fork_safety == "off":
        return 0
    findings = audit(before)
    for finding in findings:
        tell(finding, log.warning)
    return len(findings)


def refusal(findings: int, settings: Settings) -> str:
    """Why there must be no fork, or ""."""
    if not findings or settings.fork_safety != "strict":
        return ""
    return f"fork-safety=strict: {findings} findings; mend them, or set it to warn"


def run_freeze(settings: Settings, laying: Laying, log: Any) -> FreezeReport:
    """Freeze, immortal or not, as the settings say; hot code is laid on the way."""
    walk, why_not = plan(settings)
    if why_not:
        log.info("cow: immortal=off: %s", why_not)
    if settings.freeze == "off":
        leave_mortal(writers.remember)
        report = FreezeReport(collector.objects(), 0, 0.0)
    else:
        if collector.WHY_NOT:
            log.info("cow: freeze=off: %s", collector.WHY_NOT)
        report = freeze(walk, laying.look)
    for line in report.fault_lines():
        log.error("%s", line)
    for line in laying.report.lines():
        log.info("%s", line)
    return report


def run_seal(settings: Settings, laying: Laying, log: Any) -> SealReport:
    """Seal what is frozen; an allocator that we do not know is named. Last, merge."""
    report = SealReport()
    if settings.freeze == "on":
        report = seal(settings.seal == "on")
        for line in report.left_lines():
            log.info("%s", line)
        report = report.after(laying.filled)
    run_merge(settings, log.info)
    return report


def run_merge(settings: Settings, say: Callable[[str], object]) -> None:
    """Offer what is sealed to the kernel, or move it, as the settings say; log it."""
    if settings.merge == "kernel":
        say(merging.offer().line())
    elif settings.merge == "self":
        say(healing.move().line())


def conclude(
    board: Board | None, frozen: FreezeReport, report: PreloadReport, log: Any
) -> None:
    """Log the sum of the stages, and put the freeze on the board, if there was one."""
    tell(report, log.info)
    if board is not None and frozen.seconds:
        freezes.add(board, report.objects, report.immortal, frozen.seconds, report.heap)
