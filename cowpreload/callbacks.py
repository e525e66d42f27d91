"""The callbacks of an application around the fork: `before_fork` and `after_fork`.

Takes what the application registers while it is loaded; runs it when a host says so.
An exception from a callback is the host's to report: the application asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cowpreload.errors import RAISED, said

Callback = TypeVar("Callback", bound=Callable[[], object])

_before: list[Callable[[], object]] = []
_called: list[Callable[[], object]] = []
_after: list[Callable[[], object]] = []


def before_fork(callback: Callback) -> Callback:
    """Call `callback` in the master, once, after the warm up and before any fork.

    For whatever holds a connection, a thread or a lock that must not be shared:

        cowpreload.before_fork(engine.dispose)           # SQLAlchemy
        cowpreload.before_fork(session.close)            # requests

    Works as a decorator. An exception from it ends the start. With cow-warmup=auto,
    whose trial is a fork too, it is called before that if something is open, and once
    more after the warm up, and after each that the master makes while it runs;
    what it then raises is said, and it is given up after a second where the master
    serves. Without a server of ours the callback is never called.
    """
    _before.append(callback)
    return callback


def after_fork(callback: Callback) -> Callback:
    """Call `callback` in each worker, before its first request.

    For what a worker needs of its own, a thread or a client:

        cowpreload.after_fork(poller.start)

    Executors are whole again by then, `cowpreload.worker()` knows the worker (not in a
    further interpreter of uWSGI's), and the host's own hooks have run. Works as a
    decorator; registered before the fork, that is, where the application is loaded. An
    exception from it ends the worker: at the start the server too, later that worker
    alone, and the host starts another. Without a server of ours the callback is never
    called.
    """
    _after.append(callback)
    return callback


def run_before() -> None:
    """In the master: each `before_fork` callback once, as registered."""
    while len(_called) < len(_before):
        _called.append(_before[len(_called)])
        _called[-1]()


def run_before_again() -> list[str]:
    """Those that were called, where there may be new to close; lines on the faults."""
    faults = []
    for callback in _called:
        try:
            callback()
        except RAISED as error:
            faults.append(
                f"cow: before_fork callback called again: raised {said(error)}; "
                "what it closes may be open"
            )
    return faults


def run_after() -> None:
    """In a worker: each `after_fork` callback once, as registered."""
    for callback in _after:
        callback()
