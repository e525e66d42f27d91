"""Close what the master opened and the workers must not share: end of the warm up.

Takes the callbacks that an application registered with `before_fork`, and knows
Django's connections and caches without being told. Must not be called in a worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

Callback = TypeVar("Callback", bound=Callable[[], object])

_callbacks: list[Callable[[], object]] = []


def before_fork(callback: Callback) -> Callback:
    """Call `callback` in the master, once, after the warm up and before any fork.

    For whatever holds a connection, a thread or a lock that must not be shared:

        cowpreload.before_fork(engine.dispose)           # SQLAlchemy
        cowpreload.before_fork(redis_pool.disconnect)    # redis-py

    Works as a decorator. An exception from it ends the start. Without a server of
    ours the callback is never called.
    """
    _callbacks.append(callback)
    return callback


def _close_django() -> None:
    """Close every initialized connection and cache, if Django is loaded at all."""
    if "django.db" in sys.modules:
        from django.db import connections

        connections.close_all()
    if "django.core.cache" in sys.modules:
        from django.core.cache import caches

        caches.close_all()


def _close_asgiref() -> None:
    """Replace the thread of sync_to_async, which the warm up may have started.

    The executor would believe in a worker after the fork that its thread is alive,
    and the first sync view would wait for ever.
    """
    module = sys.modules.get("asgiref.sync")
    executor = getattr(
        getattr(module, "SyncToAsync", None), "single_thread_executor", None
    )
    if executor is not None and getattr(executor, "_threads", None):
        executor.shutdown(wait=True)
        module.SyncToAsync.single_thread_executor = type(executor)(  # type: ignore[union-attr]
            max_workers=1
        )


def close_all() -> None:
    """Run the registered callbacks, then close what Django and asgiref hold."""
    for callback in _callbacks:
        callback()
    _close_django()
    _close_asgiref()
