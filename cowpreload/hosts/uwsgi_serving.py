"""uWSGI's master while it serves, for what both hosts do then (serving.py)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cowpreload.board import Board
from cowpreload.freezing import Walk
from cowpreload.hosts import uwsgi_keeping
from cowpreload.hosts.serving import Part
from cowpreload.hosts.turns import Turns, begin
from cowpreload.hosts.uwsgi_apps import calls_at_fork, say, say_raised
from cowpreload.hosts.uwsgi_forks import forks, several_interpreters
from cowpreload.hosts.uwsgi_plugin import plugin
from cowpreload.hosts.uwsgi_warmup import WARMED
from cowpreload.immortal import plan
from cowpreload.settings import Settings


def at_turns(board: Board, settings: Settings, immortal: bool) -> Turns | None:
    """What the master's turns are to call, if anything; see turns.begin()."""
    why_not = ""
    if several_interpreters():
        why_not = (
            "applications have interpreters of their own, where nothing ends a page "
            "that hangs in the master"
        )
    elif plugin().writes_log():
        why_not = (
            "the master writes what workers log, and lines would be lost meanwhile; "
            "set threaded-logger = true"
        )
    return begin(
        board,
        settings,
        WARMED.paths,
        immortal=immortal,
        uid=plugin().uid(),
        say=say,
        off=uwsgi_keeping.off,
        why_not=why_not,
    )


class UwsgiMaster:
    """As Serving has it."""

    own: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._plugin = plugin()
        self.at_fork = calls_at_fork()
        self.say = self.warn = say
        self.say_raised = say_raised
        self.workers = self._plugin.workers
        self.forks = forks()

    def say_of_page(self, line: str) -> None:
        """uWSGI's log has no levels."""

    def is_alone(self) -> bool:
        return bool(self._plugin.is_alone())

    def parts(self, settings: Settings) -> list[Part]:
        return WARMED.parts

    def walk(self, settings: Settings) -> Walk | None:
        return self._plugin.walk if plan(settings)[0] else None

    @contextlib.contextmanager
    def at_rest(self) -> Iterator[Callable[[], bool]]:
        """Nothing of uWSGI's runs beside it; turn.c obeys what came at the turn's end.

        A worker that dies meanwhile is reaped then, too.
        """
        self._plugin.hold()
        yield lambda: bool(self._plugin.waits())
