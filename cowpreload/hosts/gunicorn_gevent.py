"""What gunicorn's gevent workers need of us; their own fork handling does the rest.

In the master: patched before the application is loaded, as gevent's users expect of a
preload; no native thread of gevent's at the fork. Imported for such a worker only.
"""

from __future__ import annotations

import _queue
import queue
from typing import Any

import gevent
from gevent import monkey

from cowpreload.hosts.gunicorn_hooks import chain
from cowpreload.hosts.gunicorn_master import MASTER
from cowpreload.hosts.gunicorn_timeouts import end_before_the_kill

# A task in gevent's thread pool that does not end holds its thread; the audit then
# names it. In seconds.
_PATIENCE = 2.0

# gunicorn's loop hears of the end within a second, and kills greenlets within two.
_GIVING_UP = 2


def _stop_pool_threads() -> None:
    """Let the threads that resolved names while the application loaded end.

    The pool starts others when it is asked again, here and in the workers.
    """
    hub = gevent._hub_local.get_hub_if_exists()
    pool = getattr(hub, "_threadpool", None)
    if pool is not None:
        with gevent.Timeout(_PATIENCE, False):
            pool.size = 0


def _wake_for_signals(arbiter: Any, worker: Any) -> None:
    """Let gunicorn's master wait for signals in gevent's loop, which sees SIGCHLD.

    It makes its queue of signals before it chooses the worker class, so before the
    patch; waiting on that one, it would never hear of a worker's end.
    """
    old = getattr(arbiter, "SIG_QUEUE", None)
    if isinstance(old, _queue.SimpleQueue) and monkey.is_module_patched("queue"):
        arbiter.SIG_QUEUE = queue.SimpleQueue()
        while not old.empty():
            arbiter.SIG_QUEUE.put(old.get_nowait())


class GeventMixin:
    """Before CowMixin, in a class made of gunicorn's GeventWorker."""

    cfg: Any
    _cow_chained: Any = None

    @classmethod
    def setup(cls) -> None:
        """In the master, when the class is chosen: before the application's import.

        gunicorn's worker patches itself after the fork; an application that was loaded
        unpatched keeps blocking sockets and locks. A running master is left as it is.
        """
        if not MASTER.prepared:
            monkey.patch_all()

    def __init__(self, *arguments: Any) -> None:
        """In the master, right before the fork of this worker."""
        _stop_pool_threads()
        super().__init__(*arguments)
        if GeventMixin._cow_chained is not self.cfg:
            GeventMixin._cow_chained = self.cfg
            chain(self.cfg, "pre_fork", _wake_for_signals)

    def init_process(self) -> None:
        """First thing in the worker."""
        end_before_the_kill(self.cfg, _GIVING_UP)
        super().init_process()  # type: ignore[misc]
