"""Close unasked what the master opened and the workers must not share.

Knows Django's connections and caches, redis-py's pools, multiprocessing's managers and
the threads of idle executors; gives a text for each that could not be closed. Nobody
asked for this, so nothing that fails here may end a start. Must not be called in a
worker.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable

from cowpreload import executors, loops
from cowpreload.errors import RAISED


def _django_is_configured() -> bool:
    """Whether Django has settings: libraries import it where nobody uses it."""
    module = sys.modules.get("django.conf")
    return module is not None and bool(module.settings.configured)


def _close_connections() -> None:
    """Close every database connection of Django that was opened, and its pool.

    A pool (Django 5.1, OPTIONS["pool"]) keeps its connections when they are closed, and
    has threads that a fork loses; one that is used again is made anew.
    """
    if "django.db" in sys.modules and _django_is_configured():
        from django.db import connections

        connections.close_all()
        for alias, given in connections.settings.items():
            # An alias that nobody has used may lack its driver.
            if given.get("OPTIONS", {}).get("pool"):
                connections[alias].close_pool()


def _close_caches() -> None:
    """Close every cache of Django that was opened; before 4.1, one by one."""
    if "django.core.cache" not in sys.modules or not _django_is_configured():
        return
    from django.core.cache import caches

    if hasattr(caches, "close_all"):
        caches.close_all()
        return
    for alias in caches:
        if hasattr(caches._connections, alias):
            caches[alias].close()


def _disconnect_redis() -> None:
    """Close what is idle in the pools of redis-py, which connect anew when asked.

    Django's Redis cache has one, and its close() closes nothing. What the first odd one
    raises is raised when the others are closed.
    """
    kind = getattr(sys.modules.get("redis.connection"), "ConnectionPool", None)
    if kind is None:
        return
    fault: BaseException | None = None
    for pool in [each for each in gc.get_objects() if issubclass(type(each), kind)]:
        try:
            pool.disconnect(inuse_connections=False)
        except TypeError:
            continue  # one of redis-py 5 that closes all or nothing: the audit's
        except RAISED as error:
            fault = fault or error
    if fault is not None:
        raise fault


def _close_managers() -> None:
    """Close the connections to managers of multiprocessing: a proxy makes another.

    multiprocessing itself forgets them in its own children, and not at an os.fork().
    """
    managers = sys.modules.get("multiprocessing.managers")
    if managers is None:
        return
    # A thread's own: of the others, nobody uses theirs in a worker.
    for own, _ in list(managers.BaseProxy._address_to_local.values()):
        connection = vars(own).pop("connection", None)
        if connection is not None:
            connection.close()


def _rest_executors() -> None:
    """End threads that wait for work: the master forks without them."""
    executors.rest(executors.find())


_CLOSINGS: dict[str, Callable[[], None]] = {
    "Django's connections": _close_connections,
    "Django's caches": _close_caches,
    "redis-py's pools": _disconnect_redis,
    "multiprocessing's managers": _close_managers,
    "executors": _rest_executors,
    "asyncio's locks and queues": loops.unbind,
}
KINDS = tuple(_CLOSINGS)


def close(name: str) -> list[str]:
    """Close what is of one of KINDS; a line with a traceback if that raised."""
    try:
        _CLOSINGS[name]()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is
        return [
            f"cow: closing {name}: raised {type(error).__name__}: {error}; "
            f"the start goes on without\n{traceback.format_exc().rstrip()}"
        ]
    return []


def close_all() -> list[str]:
    """Close all of it; a line with a traceback for each that raised."""
    return [line for name in KINDS for line in close(name)]
