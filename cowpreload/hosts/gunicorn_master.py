"""The master's side on gunicorn: settings, the stages before the fork, slots.

Takes gunicorn's configuration, application and log; gives slots to workers before
the fork. One object for the process: gunicorn has one arbiter. Must not start a
thread, and must not raise once the server runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer

from cowpreload import _core, collector, event_log, healing, mending, origins, writers
from cowpreload.audit import Descriptors, descriptors
from cowpreload.board import Board
from cowpreload.callbacks import run_before
from cowpreload.closing import close_all
from cowpreload.errors import SettingsError
from cowpreload.freezing import thaw
from cowpreload.hosts import gunicorn_events
from cowpreload.hosts.budgeting import BUDGETING
from cowpreload.hosts.gunicorn_ends import log_each_turn, log_end
from cowpreload.hosts.gunicorn_hooks import chain, status
from cowpreload.hosts.gunicorn_keeping import KEEPER
from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.gunicorn_serving import GunicornMaster, at_turns
from cowpreload.hosts.gunicorn_settings import config_file_names, without_effect
from cowpreload.hosts.gunicorn_signals import Waiting, children_wait, running_arbiter
from cowpreload.hosts.gunicorn_stages import HOST, import_control_server, run_audit
from cowpreload.hosts.gunicorn_statsd import STATSD
from cowpreload.hosts.gunicorn_warmup import bound_the_end, warm
from cowpreload.hosts.laying import Laying
from cowpreload.hosts.stages import conclude, make_board, run_freeze, run_seal
from cowpreload.hosts.turns import Turns
from cowpreload.hosts.unasked import unasked
from cowpreload.immortal import WHY_NOT
from cowpreload.kinds import GUNICORN
from cowpreload.leave import leave
from cowpreload.records import PreloadReport, WarmupReport
from cowpreload.settings import Settings, declared_on
from cowpreload.settings_given import read, unknown_faults, unknown_variables
from cowpreload.slots import slot_faults

_KEY = "cow_settings"


class Master:
    """What the master of this server knows between the stages."""

    def __init__(self) -> None:
        self.board: Board | None = None
        self._log: Any = None
        self._settings: Settings | None = None
        self._before: Descriptors = frozenset()
        self._end_recording: Callable[[], None] = lambda: None
        self._began = 0.0
        self._resume_gc: Callable[[], None] = lambda: None
        self._warmup: WarmupReport | None = None
        self._laying = Laying(Settings(), writers.remember)
        self._waiting = Waiting()
        self._first_workers = 0
        self._learning: Turns | None = None
        self.prepared = False
        self.immortal = False

    # ---- settings -------------------------------------------------------

    def configure(self, cfg: Any) -> Settings:
        """Read our settings out of `cfg`, once for each configuration loaded.

        Raises:
            RuntimeError: at start, with every fault. A reload keeps what it had.
        """
        known = cfg.__dict__.get(_KEY)
        if isinstance(known, Settings):
            return known
        settings = self._read(cfg)
        cfg.__dict__[_KEY] = settings
        cfg.settings["preload_app"].value = True
        chain(cfg, "on_starting", self._start)
        chain(cfg, "when_ready", lambda arbiter: self._waiting.give())
        chain(cfg, "child_exit", self._child_exit)
        chain(cfg, "on_exit", self._end, end=True)
        if self._settings is None:
            self._began = time.monotonic()
            self._before = descriptors()
            self._end_recording = origins.record()
            healing.begin(settings)
            if settings.loading_gc == "off":
                self._resume_gc = collector.stop()
        elif settings != self._settings and self._log:
            gunicorn_events.changed(settings, self._log, self.immortal)
        self._settings = settings
        if self.prepared:  # a reload starts it over
            KEEPER.reload(settings, self.board)
            self._learn(settings, cfg)
        return settings

    def _read(self, cfg: Any) -> Settings:
        names = config_file_names(cfg)
        faults = unknown_faults(names, GUNICORN) + slot_faults("workers", cfg.workers)
        faults += unknown_variables()[0]
        given = {}
        for declared in declared_on(GUNICORN):
            setting = cfg.settings.get(declared.variable)
            given[declared.attribute] = setting.get() if setting else None
            if setting is None and declared.variable in names:
                faults.append(
                    f"{declared.variable}: no effect, the start-up hook is off "
                    f"(COWPRELOAD_STARTUP); set {declared.environment}"
                )
        try:
            return read(given, faults=faults, immortal_why_not=WHY_NOT)
        except SettingsError as error:
            text = "the cow settings are refused:\n  " + "\n  ".join(error.faults)
            if self._settings is None:
                raise RuntimeError(text) from None
            # The server runs: a typo in a reload must not take it down.
            self._log.error("cow: reload keeps the settings it had; %s", text)
            return self._settings

    # ---- the stages before the fork -----------------------------------------

    def _start(self, arbiter: Any) -> None:
        """Warm up; gunicorn has its pid file, and no signal handlers yet."""
        log_each_turn(arbiter, lambda: self.board, self._turn)
        try:
            self.warm(arbiter.app, arbiter.log)
        except StopIteration:
            arbiter.halt()
        except BaseException:
            if arbiter.pidfile is not None:
                arbiter.pidfile.unlink()
            raise

    def warm(self, app: Any, log: Any) -> None:
        """Preload, warm up, close: before the sockets are bound.

        Raises:
            RuntimeError: a warm-up path failed.
            StopIteration: the master was told to end, as gunicorn itself says it.
        """
        if self._warmup is not None:
            return
        assert self._settings is not None
        self._log = log = Unfailing(log)
        gunicorn_events.begin(self._settings, log)
        note = unknown_variables()[1]
        if note:
            log.info(note)
        for line in without_effect(app.cfg):
            log.warning(line)
        self._laying = Laying(self._settings, writers.remember)
        loaded = self._laying.begin
        self._warmup = warm(
            app, self._settings, log, self._waiting, self._before, loaded
        )
        run_before()
        thaw()
        for fault in close_all():
            log.error(fault)
        for warning in self._warmup.warnings:
            log.warning(warning)

    def prepare(self, cfg: Any, app: Any, log: Any) -> Board | None:
        """Audit, freeze and seal, once, right before the first fork; give the board.

        Raises:
            HaltServer: fork-safety is strict and there are findings, or (where the
                start-up hook is off) what `configure` and `warm` raise.
        """
        if self.prepared:
            return self.board
        log = Unfailing(log)
        arbiter = running_arbiter()
        if arbiter is not None and arbiter.WORKERS:
            self._come_too_late(cfg, log)
            return None
        try:
            settings = self.configure(cfg)
            self.warm(app, log)
        except RuntimeError as error:
            raise HaltServer(str(error)) from error
        except StopIteration:
            raise  # told to end; the arbiter ends as it does then
        except Exception as error:  # without the hook, the application is loaded here
            log.exception("cow: the application does not load")
            raise HaltServer("App failed to load.", Arbiter.APP_LOAD_ERROR) from error
        assert self._warmup is not None
        self.board = make_board(HOST, self._warmup.warming, log)
        self._first_workers = cfg.workers
        self._end_recording()
        import_control_server(cfg)
        thaw()  # when_ready may have frozen, too
        findings = run_audit(self._before, settings, log)
        mending.prepare()  # os.fork() mends
        self.prepared = True
        frozen = run_freeze(settings, self._laying, log)
        self.immortal = frozen.immortal.objects > 0
        self._resume_gc()
        sealed = run_seal(settings, self._laying, log)
        self._learn(settings, cfg)
        report = PreloadReport(
            objects=frozen.objects,
            immortal=frozen.immortal.objects,
            hot=self._laying.report.codes,
            sealed=sealed.bytes,
            heap=_core.heap_size(),
            warmup_requests=self._warmup.requests,
            findings=findings,
            seconds=time.monotonic() - self._began,
            freeze_seconds=frozen.seconds,
        )
        conclude(self.board, frozen, report, log)
        return self.board

    def _learn(self, settings: Settings, cfg: Any) -> None:
        """From what the workers do from now on, if there is anything to learn."""
        if self.board is None or self._warmup is None:
            return
        KEEPER.tell(settings, self.board)
        log, warm = self._log, self._warmup.paths
        BUDGETING.tell(self.board, settings, log.info, log.exception)
        self._learning = None
        with unasked("warm up anew", log.exception):
            self._learning = at_turns(
                self.board, settings, cfg, log, warm, self.immortal
            )

    def _turn(self, arbiter: Any) -> None:
        KEEPER.turn(self.board)
        BUDGETING.turn(self.board)
        STATSD.turn(arbiter, self.board, self._settings)
        if self._learning is not None:
            self._learning.turn(GunicornMaster(arbiter))

    def _come_too_late(self, cfg: Any, log: Any) -> None:
        """Other workers run: a reload gave this class, without the start-up hook, which
        would have kept the class it had."""
        log.error(
            "cow: worker_class=%s: nothing was loaded before the first fork: serving "
            "on without limits and without sharing; start the server anew",
            cfg.worker_class_str,
        )
        self._log = log  # a later reload may have something to say
        self._settings = cfg.__dict__[_KEY] = Settings()
        self.prepared = True

    def _end(self, arbiter: Any) -> None:
        """The last of the master: gunicorn would call sys.exit() next."""
        bound_the_end()
        with children_wait():
            KEEPER.end(self.board)
            event_log.end()
        if self.immortal:
            # Finalization expects that what nobody holds is freed.
            leave(status(sys.exc_info()[1]))
        # A mortal heap is finalized as it would be without us: what is frozen too.
        collector.unfreeze()

    # ---- while the server runs ----------------------------------------------

    def reserve(self, log: Any) -> int:
        """A slot for the next worker; 0 if there is none, and it runs unwatched."""
        if self.board is None:
            return 0
        slot = self.board.reserve()
        if not slot:
            Unfailing(log).error(
                "cow: board full slots=%d: the next worker runs without limits",
                _core.SLOTS,
            )
        return slot

    def started(self, age: int) -> bool:
        """Whether the start is over, for the worker of this age (gunicorn's count).

        It is when a worker became ready; where the board does not tell, after the
        workers that the start has forked.
        """
        on_board = self.board is not None and self.board.raw.started
        return bool(on_board) or age > self._first_workers

    def _child_exit(self, arbiter: Any, worker: Any) -> None:
        """A worker was reaped: free its slot."""
        slot = getattr(worker, "cow_slot", 0)
        if not slot or self.board is None:
            return
        # It may have died before the master's next turn.
        log_end(self.board, slot, Unfailing(arbiter.log))
        self.board.free(slot)


MASTER = Master()
