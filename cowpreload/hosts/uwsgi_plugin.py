"""The functions of plugin/serving.c, as Python calls them: main interpreter only."""

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

    def in_child(self) -> None:
        """In the child of a trial: it is not the master."""

    def after_child(self, pid: int) -> None:
        """That child is gone: let go of the locks of uWSGI's that it held."""


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
