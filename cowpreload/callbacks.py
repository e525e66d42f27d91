"""The callbacks of an application around the fork: `before_fork` and `after_fork`.

Takes what the application registers while it is loaded; runs it when a host says so.
An exception from a callback is the host's to report: the application asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Callback = TypeVar("Callback", bound=Callable[[], object])

_before: list[Callable[[], object]] = []
_after: list[Callable[[], object]] = []


def before_fork(callback: Callback) -> Callback:
    """Call `callback` in the master, once, after the warm up and before any fork.

    For whatever holds a connection, a thread or a lock that must not be shared:

        cowpreload.before_fork(engine.dispose)           # SQLAlchemy
        cowpreload.before_fork(redis_pool.disconnect)    # redis-py

    Works as a decorator. An exception from it ends the start. Without a server of
    ours the callback is never called.
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
    for callback in _before:
        callback()


def run_after() -> None:
    """In a worker: each `after_fork` callback once, as registered."""
    for callback in _after:
        callback()
