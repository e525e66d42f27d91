"""Mend: put right, first of all in a worker, what believes in the master's threads.

`prepare` is called in the master, right before the freeze, in each interpreter; `mend`
in each worker before any code of the application. It writes to what must change and to
nothing else, takes no lock that was inherited, and does nothing in processes that a
worker forks itself: what it finds there is the worker's. A step that raises is said,
without any lock, and does not stop the others.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any

from cowpreload import executors, generators
from cowpreload.errors import RAISED, said
from cowpreload.threads import join_others


class _Prepared:
    """What the next fork has to mend."""

    def __init__(self) -> None:
        self.armed = False
        self.executors: list[Any] = []
        self.generators: list[Any] = []


_prepared = _Prepared()


def prepare() -> None:
    """In the master: remember what has to be whole after each fork from now on."""
    known = {id(each) for each in _prepared.executors}
    new = [each for each in executors.find() if id(each) not in known]
    _prepared.executors += new
    _prepared.generators = _find_generators()
    _prepared.armed = True


def _find_generators() -> list[Any]:
    found: list[Any] = []
    _attempt("numpy.random", lambda: found.extend(generators.find()))
    known = {id(each) for each in found}
    # What is frozen by now is not found any more.
    return found + [each for each in _prepared.generators if id(each) not in known]


def disarm() -> None:
    """In the master: no fork is to come that needs it, until `prepare` is called."""
    _prepared.armed = False
    _prepared.executors = []
    _prepared.generators = []


def mend() -> None:
    """In a worker, once, before the application runs; elsewhere it does nothing."""
    if not _prepared.armed:
        return
    _prepared.armed = False
    _attempt("threads", _bury_threads)
    _attempt("concurrent.futures", executors.forget_dead_threads)
    _attempt("multiprocessing.forkserver", executors.forget_fork_server)
    for executor in _prepared.executors:
        kind = type(executor)
        _attempt(f"{kind.__module__}.{kind.__qualname__}", executors.mend, executor)
    for generator in _prepared.generators:
        _attempt("numpy.random", generators.reseed, generator)


def _attempt(name: str, step: Callable[..., None], *arguments: Any) -> None:
    try:
        step(*arguments)
    except RAISED as error:
        line = f"cow: mending {name}: raised {said(error)}; left as it is\n"
        with contextlib.suppress(OSError):
            os.write(2, line.encode(errors="backslashreplace"))


def _bury_threads() -> None:
    """Let `threading` know that the other threads are gone, where the host did not.

    uWSGI forks without Python's at-fork callbacks: threads of the master would seem
    alive, and the worker would wait for them at its end.
    """
    here = threading.get_ident()
    dead = [each for ident, each in threading._active.items() if ident != here]  # type: ignore[attr-defined]
    if not dead:
        return
    if hasattr(threading, "_thread_shutdown"):  # 3.13 and newer
        # Python's own looks for ever at a list that a thread leaves by itself.
        threading._thread_shutdown = join_others
    for thread in dead:
        for name in ("_handle", "_os_thread_handle"):  # 3.13; newer
            handle = getattr(thread, name, None)
            if handle is not None and not handle.is_done():
                handle._set_done()
    threading._after_fork()  # type: ignore[attr-defined]


# gunicorn and multiprocessing fork by os.fork(). Early enough: callbacks run in the
# order of their registration, and the hosts import this before the application.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=mend)
