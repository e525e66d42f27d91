"""The gunicorn worker class `cow` (sync, or threaded with --threads), and its mixin.

The mixin holds what all our classes do; they differ in gunicorn's own base.
Others are made in gunicorn_compose.py.
In the master: `cow_configure`, `__init__`. In the worker: everything else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, cast

from gunicorn.arbiter import Arbiter
from gunicorn.workers.gthread import ThreadWorker
from gunicorn.workers.sync import SyncWorker

from cowpreload import callbacks, collector, watch, writers
from cowpreload.errors import NativeError
from cowpreload.event_log import EVENT_LOG
from cowpreload.hosts.gunicorn_drain import DrainMixin
from cowpreload.hosts.gunicorn_healing import HealMixin
from cowpreload.hosts.gunicorn_hooks import chain
from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.gunicorn_master import MASTER
from cowpreload.leave import exit_code, leave
from cowpreload.served import Noting, wanted
from cowpreload.settings import Settings
from cowpreload.watch import Host, Watch

# A callback that fails does so at once: without a pause, gunicorn would fork for ever.
_PAUSE_SECONDS = 1.0


def _finalize(code: int) -> None:
    """Let the interpreter end as it does without us: what is frozen too."""
    collector.unfreeze()


class CowMixin:
    """The copy-on-write lifecycle around one of gunicorn's workers."""

    cfg: Any
    log: Any
    age: int
    cow_slot = 0
    cow_chosen = False  # made for the setting cow-worker
    _cow_settings: Settings
    _cow_watch: Watch | None = None
    _cow_ready = False
    _cow_told = False
    _cow_requests = 0

    @classmethod
    def cow_configure(cls, cfg: Any) -> type:
        """In the master, when gunicorn resolved the worker class; the one to use."""
        MASTER.configure(cfg)
        return cls

    def __init__(self, age: int, ppid: int, sockets: Any, app: Any, *rest: Any) -> None:
        """In the master, right before the fork of this worker."""
        _timeout, cfg, log = rest
        first = not MASTER.prepared
        board = MASTER.prepare(cfg, app, log)
        super().__init__(age, ppid, sockets, app, *rest)  # type: ignore[call-arg]
        self._cow_settings = MASTER.configure(cfg)
        if first and self._cow_settings.worker and not self.cow_chosen:
            Unfailing(log).warning(
                "cow: worker=%s: no effect; it needs worker_class=cow, and the "
                "start-up hook",
                self._cow_settings.worker,
            )
        writers.flush_shared()
        if board is not None:
            self.cow_slot = MASTER.reserve(log)

    # Each worker class counts its requests in `nr`; the board should show them.
    @property
    def nr(self) -> int:
        return self._cow_requests

    @nr.setter
    def nr(self, value: int) -> None:
        self._cow_requests = value
        if self._cow_watch is not None:
            self._cow_watch.count(value)

    def init_process(self) -> None:
        """First thing in the worker."""
        EVENT_LOG.close()  # it would keep a file that is rotated away
        if self._cow_settings.gc == "off":
            collector.stop()
        # A reload may have changed the setting; the heap stays what it is.
        # PyPy finalizes nothing, and only its own end flushes the open files there.
        fast = self._cow_settings.exit == "fast" and collector.CAN_FREEZE
        fast = fast or MASTER.immortal
        self._cow_chain_exit(leave if fast else _finalize)
        self._cow_start_watch()
        if MASTER.board is not None and wanted(self._cow_settings):
            self.cow_note(Noting(MASTER.board))
        self._cow_run_after()
        super().init_process()  # type: ignore[misc]

    def cow_note(self, noting: Noting) -> None:
        """Let the requests of this worker be noted, after their answers."""
        setting = self.cfg.settings["post_request"]
        if setting.get() is setting.default:
            setting.value = noting.after_wsgi
        else:
            chain(self.cfg, "post_request", noting.after_wsgi)

    def _cow_run_after(self) -> None:
        """The application's callbacks; one that raises ends this worker.

        At the start the server too, as a post_fork hook does. Once it runs, the cause
        may pass, and the other workers serve: gunicorn must not see its own codes.
        """
        try:
            callbacks.run_after()
        except (Exception, SystemExit):
            if not MASTER.started(self.age):
                raise
            Unfailing(self.log).exception(
                "cow: worker=%d after_fork callback failed: the worker ends; "
                "mend the callback",
                self.cow_slot,
            )
            time.sleep(_PAUSE_SECONDS)
            sys.exit(1)

    def _cow_start_watch(self) -> None:
        if not self.cow_slot or MASTER.board is None:
            return
        limits = self._cow_settings.limits(self.cfg.workers, self.cfg.graceful_timeout)
        # SIGTERM is how gunicorn itself ends a worker after its requests.
        host = Host(leave_signal=signal.SIGTERM)
        try:
            self._cow_watch = watch.start(MASTER.board, self.cow_slot, limits, host)
        except NativeError as error:
            Unfailing(self.log).error(
                "cow: not watched (%s): serving on without limits", error
            )

    def _cow_chain_exit(self, end: Callable[[int], None]) -> None:
        """Call `end` after the user's worker_exit hook, in this process only.

        The arbiter calls that hook in the master too, for a worker it cannot find.
        """
        theirs = self.cfg.settings["worker_exit"].get()

        def worker_exit(server: Any, worker: Any) -> None:
            if os.getpid() != worker.pid:
                theirs(server, worker)
                return
            code = exit_code(sys.exc_info()[1])
            if self._cow_watch is not None:
                self._cow_watch.leaving()
            try:
                theirs(server, worker)
            except SystemExit as error:
                code = exit_code(error)
            except Exception:
                Unfailing(self.log).exception("cow: worker_exit hook failed")
            end(code)

        self.cfg.settings["worker_exit"].value = worker_exit

    def notify(self) -> None:
        """The heartbeat; its first beat is the moment when the worker can serve."""
        super().notify()  # type: ignore[misc]
        if not self._cow_ready:
            self._cow_ready = True
            self._cow_become_ready()
        elif self._cow_watch is not None and self._cow_watch.asked_again:
            self._cow_leave_unasked()

    def _cow_leave_unasked(self) -> None:
        """Do what SIGTERM does: the application may have taken its handler away."""
        if self._cow_told:
            return
        self._cow_told = True
        asyncio_way = getattr(self, "handle_exit_signal", None)
        if asyncio_way is not None:
            asyncio_way()
        else:
            self.handle_exit(signal.SIGTERM, None)  # type: ignore[attr-defined]
            # The loop is about to wait, and a signal of gunicorn's own would end that.
            with contextlib.suppress(OSError, AttributeError):
                os.write(self.PIPE[1], b"1")  # type: ignore[attr-defined]

    def _cow_become_ready(self) -> None:
        if self._cow_watch is None:
            if MASTER.board is not None:
                MASTER.board.raw.started = 1  # a later worker's limit ends no server
            return
        ready = self._cow_watch.ready(self._cow_settings.jitter)
        # A board that was wiped tells of a start that is not over.
        if ready.refused and not MASTER.started(self.age):
            Unfailing(self.log).error(ready.text)
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
        if ready.text:
            Unfailing(self.log).warning(ready.text)


class CowWorker(CowMixin, HealMixin, SyncWorker):  # type: ignore[misc]
    """`--worker-class cow`; with threads, a CowThreadWorker is made instead.

    With --cow-worker, it is the class made of that one.
    """

    @classmethod
    def cow_configure(cls, cfg: Any) -> type:
        """The class that cow-worker asks for, if it does."""
        setting = cfg.settings.get("cow_worker")
        given = setting and setting.get()
        if given and cls is CowWorker:
            # It imports this module, and is needed by few.
            from cowpreload.hosts.gunicorn_compose import chosen

            found: Any = chosen(given)
            if found is not cls:
                return cast(type, found.cow_configure(cfg))
        return super().cow_configure(cfg)

    def handle(self, *connection: Any) -> None:
        """One connection, which is one request: what leaves for room leaves it last."""
        if self._cow_watch is None:
            super().handle(*connection)
            return
        self._cow_watch.serves(True)
        try:
            super().handle(*connection)
        finally:
            self._cow_watch.serves(False)

    def __new__(cls, *arguments: Any) -> Any:
        """gunicorn turns sync into gthread only for the class named "sync"."""
        cfg = arguments[5]
        if cls is CowWorker and cfg.threads > 1:
            return CowThreadWorker(*arguments)
        return super().__new__(cls)


class CowThreadWorker(CowMixin, DrainMixin, ThreadWorker):  # type: ignore[misc]
    """`--worker-class cow --threads N`."""
