"""The child of a trial on uWSGI, and the signals that come meanwhile: plugin/trial.c.

Runs in the interpreter of the application. Must not import the native core.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator

from cowpreload.forks import Forks
from cowpreload.hosts.uwsgi_apps import mend
from cowpreload.hosts.uwsgi_plugin import plugin


def several_interpreters() -> bool:
    """Whether applications have interpreters of their own."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # from 3.13 on; before
        with contextlib.suppress(ImportError):
            return len(importlib.import_module(name).list_all()) > 1
    return False


def _begin(master: int) -> None:
    plugin().in_child(master)
    mend()  # a plain fork has called nothing


def forks() -> Forks:
    """How the child of a trial is forked."""
    fork = plugin().fork if several_interpreters() else None
    return Forks(_begin, plugin().after_child, fork)


def waits() -> bool:
    """Whether a signal came that was kept: then pages stay cold."""
    return bool(plugin().kept_signal())


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Keep those that end or reload; the master sends one again when it serves."""
    plugin().keep_signals()
    try:
        yield
    finally:
        plugin().let_signals_go()
