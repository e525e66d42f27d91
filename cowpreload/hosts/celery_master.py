"""The master's side on Celery: the stages before the first fork, slots, turns.

Takes settings; gives slots to children. Must not start a thread, and must not raise
once the worker runs. Where the broker has no event loop, a thread of Celery's forks and
calls `turn`: nothing here may need the main one.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import logging
import os
import time
from dataclasses import replace

from celery import __version__ as celery_version
from celery.exceptions import ImproperlyConfigured
from celery.platforms import EX_FAILURE
from celery.worker import state as celery_state
from kombu.utils import eventio

from cowpreload import _core, event_log, mending
from cowpreload.audit import Descriptors, descriptors
from cowpreload.board import Board
from cowpreload.callbacks import run_before
from cowpreload.closing import close_all
from cowpreload.event_log import EVENT_LOG, fault, tell
from cowpreload.freezing import thaw
from cowpreload.hosts.celery_child import Child
from cowpreload.hosts.laying import Laying
from cowpreload.hosts.stages import (
    conclude,
    look_for_findings,
    make_board,
    refusal,
    run_freeze,
    run_seal,
)
from cowpreload.hosts.telling import Workers
from cowpreload.kinds import CELERY
from cowpreload.lifecycle import Start
from cowpreload.records import PreloadReport
from cowpreload.settings import Settings
from cowpreload.warmed import NOT_WARMED

# Below Celery's own, which has handlers whatever the application does to the root.
LOG = logging.getLogger("celery.cowpreload")
_HOST = f"celery {celery_version}"


def _not_of_the_application() -> Descriptors:
    """What is open and was given to this process, or is Celery's own.

    Whoever starts a process leaves it descriptors that survive an exec; what Python
    opens does not survive one.
    """
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not fcntl.fcntl(int(name), fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                found.append(int(name))
    # The event loop's, and a broker's own.
    for each in gc.get_objects():
        if type(each) is eventio._epoll:
            with contextlib.suppress(Exception):
                found.append(each._epoll.fileno())
    return descriptors(found)


class Master:
    """What this worker's master knows of its children."""

    def __init__(self, settings: Settings, children: int) -> None:
        self._settings = settings
        self._children = children
        self._board: Board | None = None
        self._slots: dict[int, int] = {}  # by pid
        self._serves = False
        self._full = False
        # A recycling as a warning, as Celery says it of its own limit.
        self._workers = Workers(LOG.warning, LOG.warning, LOG.debug)

    def prepare(self) -> None:
        """Close, audit, freeze and seal, once, right before the first fork.

        Raises:
            ImproperlyConfigured: fork-safety is strict, and there are findings; or
                the event log cannot be opened.
            Exception: what a before_fork callback raises.
        """
        began = time.monotonic()
        settings = self._settings
        self._open_event_log()
        tell(Start(settings, CELERY, celery_version), LOG.info)
        run_before()
        thaw()
        for line in close_all():
            LOG.error(line)
        self._board = make_board(_HOST, NOT_WARMED, LOG)
        findings = look_for_findings(_not_of_the_application(), settings, LOG)
        why_not = refusal(findings, settings)
        if why_not:
            raise ImproperlyConfigured(why_not)
        mending.prepare()  # os.fork() mends
        laying = Laying(settings, lambda: None)
        frozen = run_freeze(settings, laying, LOG)
        sealed = run_seal(settings, laying, LOG)
        report = PreloadReport(
            objects=frozen.objects,
            immortal=frozen.immortal.objects,
            hot=laying.report.codes,
            sealed=sealed.bytes,
            heap=_core.heap_size(),
            warmup_requests=0,
            findings=findings,
            seconds=time.monotonic() - began,
        )
        conclude(self._board, frozen, report, LOG)

    def _open_event_log(self) -> None:
        path = self._settings.event_log
        try:
            if path is not None:
                EVENT_LOG.open(path, LOG.error)
        except OSError as error:
            text = f"the cow settings are refused:\n  {fault(str(path), error)}"
            raise ImproperlyConfigured(text) from None

    # ---- slots ---------------------------------------------------------------

    def reserve(self) -> int:
        """A slot for the next child; 0 if there is none, and it runs unwatched."""
        if self._board is None:
            return 0
        slot = self._board.reserve()
        # It may be that of a child that was waited for and is in billiard's list still,
        # which must not free it later: the new child would run on unwatched.
        self._slots = {pid: each for pid, each in self._slots.items() if each != slot}
        if not slot and not self._full:
            self._full = True
            LOG.error(
                "cow: board full slots=%d: further children run without limits",
                _core.SLOTS,
            )
        return slot

    def child(self, slot: int) -> Child:
        """What the child of this slot is to know."""
        # A task may run for hours: it is given the time that it takes. And one that is
        # told to go works on until its task is done, so that any number may be told.
        limits = self._settings.limits(self._children, graceful=0)
        most = self._settings.max_recycling or _core.SLOTS
        limits = replace(limits, max_recycling=most)
        return Child(self._board, slot, self._settings, limits)

    def forked(self, pid: int, slot: int) -> None:
        """The child of this slot runs."""
        if slot:
            self._slots[pid] = slot

    def free(self, slot: int) -> None:
        """There is no child of this slot any more."""
        if slot and self._board is not None:
            with contextlib.suppress(Exception):
                self._workers.look(self._board, slot)  # it died before the next turn
                self._board.free(slot)

    def free_gone(self, pids: set[int]) -> None:
        """Free the slots of all children but these."""
        for pid in [each for each in self._slots if each not in pids]:
            self.free(self._slots.pop(pid))

    # ---- while it runs -------------------------------------------------------

    def turn(self) -> None:
        """About once a second: say what was decided, end a start that was refused."""
        if self._board is None:
            return
        with contextlib.suppress(Exception):
            self._workers.look_at_all(self._board)
            raw = self._board.raw
            # Once a child serves, only a stray write could say so.
            self._serves |= raw.started == 1 and not raw.refused
            refused = raw.refused and not self._serves
            if refused and celery_state.should_stop is None:
                celery_state.should_stop = EX_FAILURE

    def end(self) -> None:
        """The pool ends, and the worker with it."""
        event_log.end()
