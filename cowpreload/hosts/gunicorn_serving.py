"""gunicorn's master while it serves, for what both hosts do then (serving.py)."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer

from cowpreload.board import Board
from cowpreload.freezing import Walk
from cowpreload.hosts.forks import FORKS
from cowpreload.hosts.gunicorn_interface import interface_of, runs_lifespan, script_name
from cowpreload.hosts.gunicorn_keeping import KEEPER
from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.gunicorn_signals import children_wait
from cowpreload.hosts.gunicorn_warmup import started_since
from cowpreload.hosts.serving import Part
from cowpreload.hosts.turns import Turns, begin
from cowpreload.immortal import plan
from cowpreload.settings import Settings
from cowpreload.warmup_visits import Manner

_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def at_turns(
    board: Board,
    settings: Settings,
    cfg: Any,
    log: Any,
    warm: Sequence[str],
    immortal: bool,
) -> Turns | None:
    """What the master's turns are to call, if anything; see turns.begin()."""
    return begin(
        board,
        settings,
        warm,
        prefix=script_name(cfg.worker_class),
        immortal=immortal,
        uid=cfg.uid,
        say=log.info,
        off=KEEPER.off,
    )


@contextlib.contextmanager
def _noted(came: list[int]) -> Iterator[None]:
    """Add to `came` the number of each signal that gunicorn's handlers queue."""
    before: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        before[number](number, frame)

    try:
        for number in Arbiter.SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):  # not one that the application ignores
                before[number] = handler
                signal.signal(number, note)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class GunicornMaster:
    """An arbiter, as Serving has it."""

    # gunicorn 23 reaps workers in its handler, at any time.
    own: tuple[type[BaseException], ...] = (HaltServer,)
    at_fork = True
    forks = FORKS

    def __init__(self, arbiter: Any) -> None:
        self._arbiter = arbiter
        log = Unfailing(arbiter.log)
        self.say, self.warn, self.say_of_page = log.info, log.warning, log.debug
        self.say_raised = log.exception

    def workers(self) -> int:
        return int(self._arbiter.num_workers)

    def is_alone(self) -> bool:
        return not self._arbiter.reexec_pid and not self._arbiter.master_pid

    def parts(self, settings: Settings) -> list[Part]:
        cfg = self._arbiter.cfg
        app = self._arbiter.app.wsgi()
        spoken = interface_of(cfg.worker_class)
        lifespan = runs_lifespan(cfg)
        prefix = script_name(cfg.worker_class)
        return [Part(app, Manner.of(app, settings, prefix, spoken, lifespan))]

    def walk(self, settings: Settings) -> Walk | None:
        return plan(settings)[0]

    @contextlib.contextmanager
    def at_rest(self) -> Iterator[Callable[[], bool]]:
        """Without gunicorn's own thread; gunicorn obeys what came when it is over."""
        arbiter = self._arbiter
        # gunicorn ends it around forks; an application's code is as good a reason.
        stop = getattr(arbiter, "_stop_control_server", None)
        start = getattr(arbiter, "_start_control_server", None)
        came: list[int] = []

        def go_on() -> None:
            if start is not None and not set(came) & set(_STOPS):
                start()

        with contextlib.ExitStack() as end:  # all of it, whatever raises
            # The trial has taken those that came; and see children_wait().
            end.callback(signal.raise_signal, signal.SIGCHLD)
            end.enter_context(_noted(came))
            end.enter_context(children_wait())
            if stop is not None and start is not None:
                stop()
                end.callback(go_on)
            end.callback(started_since, set(threading.enumerate()))
            yield lambda: bool(came)
