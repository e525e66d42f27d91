"""The child's side on Celery: what one process of the pool does around its tasks.

Its limits are read and judged by the watching thread; a child that was told to go ends
between two tasks, the way that Celery's own worker_max_memory_per_child ends it: its
results are taken, nothing that it was given is lost. billiard ends children by
os._exit, without exit handlers and without finalizing anything, with and without us.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from billiard.pool import EX_RECYCLE

from cowpreload import callbacks, collector, watch
from cowpreload._core import lib
from cowpreload.board import Board
from cowpreload.errors import RAISED, NativeError
from cowpreload.event_log import EVENT_LOG
from cowpreload.records import Limits
from cowpreload.settings import Settings

_LOG = logging.getLogger("celery.cowpreload")
# A callback that fails does so at once: without a pause, Celery would fork for ever.
_PAUSE_SECONDS = 1.0


class Child:
    """One child, from the fork to its end."""

    def __init__(
        self, board: Board | None, slot: int, settings: Settings, limits: Limits
    ) -> None:
        self._board = board
        self.slot = slot
        self._settings = settings
        self._limits = limits
        self._watch: watch.Watch | None = None
        self._tasks = 0

    def begin(self) -> None:
        """First thing after the fork; what was inherited was mended by then."""
        EVENT_LOG.close()  # it would keep a file that is rotated away
        if self._settings.gc == "off":
            collector.stop()
        if self._board is None or not self.slot:
            return
        try:
            self._watch = watch.start(
                self._board, self.slot, self._limits, watch.Host()
            )
        except NativeError as error:
            _LOG.error("cow: not watched (%s): serving on without limits", error)

    def run_after(self) -> None:
        """The application's callbacks; one that raises ends this child.

        At the start the whole worker: no other child would do better.
        """
        try:
            callbacks.run_after()
        except RAISED:
            board = self._board.raw if self._board is not None else None
            ends = bool(
                board is not None
                and not board.started
                and lib.cow_board_refuse(board, self.slot)
            )
            _LOG.exception(
                "cow: worker=%d after_fork callback failed: the %s ends; "
                "mend the callback",
                self.slot,
                "start" if ends else "child",
            )
            time.sleep(_PAUSE_SECONDS)
            sys.exit(1)

    def become_ready(self) -> None:
        """It can take tasks: growth counts from here."""
        if self._watch is None:
            return
        ready = self._watch.ready(self._settings.jitter)
        if ready.text:
            (_LOG.error if ready.refused else _LOG.warning)(ready.text)

    def began_task(self) -> None:
        """It was given one."""
        self._tasks += 1

    def may_wait(self) -> bool:
        """Whether it is to wait for a further task; all that it began are done."""
        if self._watch is None:
            return True
        self._watch.count(self._tasks)
        return not self._watch.told

    def leaving(self) -> None:
        """Whoever ends it."""
        if self._watch is not None:
            self._watch.leaving()

    @property
    def interval(self) -> float:
        """Seconds between two looks of a child that has nothing to do."""
        return self._settings.check_interval


class ChildMixin:
    """Around what billiard runs in a child."""

    cow_child: Child
    inq: Any
    _shutdown: Any
    wait_for_job: Callable[[], Any]

    def _make_child_methods(self, *arguments: Any) -> None:
        """How it waits for a task."""
        super()._make_child_methods(*arguments)  # type: ignore[misc]
        receive, child = self.wait_for_job, self.cow_child

        def wait_for_job() -> Any:
            if not child.may_wait():
                sys.exit(EX_RECYCLE)
            # billiard's own wait has no end: without a task it would never look again.
            # What ends it there is a restart of the pool (pool_restart), which
            # `receive` looks for first.
            ends = self._shutdown is not None and self._shutdown.is_set()
            if not ends and not self.inq._reader.poll(child.interval):
                return None
            job = receive()
            if job:
                child.began_task()
            return job

        self.wait_for_job = wait_for_job

    def after_fork(self) -> None:
        """Celery's own initializer, which sends worker_process_init, is in the middle:
        `cowpreload.worker()` knows the child there."""
        self.cow_child.begin()
        super().after_fork()  # type: ignore[misc]
        self.cow_child.run_after()

    def on_loop_start(self, pid: int) -> None:
        """Right before it takes tasks."""
        self.cow_child.become_ready()
        super().on_loop_start(pid)  # type: ignore[misc]

    def _do_exit(self, pid: int, exitcode: int, exc: Any = None) -> None:
        """The last of it."""
        self.cow_child.leaving()
        super()._do_exit(pid, exitcode, exc)  # type: ignore[misc]
