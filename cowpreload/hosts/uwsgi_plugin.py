"""The functions of plugin/serving.c and trial.c, as Python calls them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Protocol, cast

from cowpreload.freezing import Walk
from cowpreload.hosts.uwsgi_apps import reported


class Plugin(Protocol):
    """What uWSGI's master knows, and does for us; numbers are 0 or 1 unless said."""

    walk: Walk

    def hold(self) -> None:
        """Let signals wait until this turn of the master is over."""

    def waits(self) -> int:
        """Whether one does."""

    def workers(self) -> int:
        """How many are wanted."""

    def is_alone(self) -> int:
        """Whether it goes on as it is: nobody ends, reloads, suspends or cheaps it."""

    def uid(self) -> int:
        """Of the workers."""

    def writes_log(self) -> int:
        """Whether the master's loop writes what workers log."""

    def fork(self) -> int:
        """Nothing of Python's is called around it."""

    def in_child(self, master: int) -> None:
        """In the child of a trial: it is not the master, and ends with it."""

    def after_child(self, pid: int) -> None:
        """That child is gone: let go of the locks of uWSGI's that it held."""

    def keep_signals(self) -> None:
        """At a start: keep what is sent to the master, until it serves."""

    def let_signals_go(self) -> None:
        """Let it do again what it did before."""

    def kept_signal(self) -> int:
        """The number of the one that waits, or 0."""


class _Met:
    plugin: Plugin


_met = _Met()


@reported
def meet(functions: dict[str, Any]) -> int:
    """Before the warm up; plugin/bridge.c calls it."""
    _met.plugin = cast(Plugin, SimpleNamespace(**functions))
    return 0


def plugin() -> Plugin:
    """The plugin that runs this process."""
    return _met.plugin
