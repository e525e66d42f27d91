"""The Celery pool `cowpreload.celery:TaskPool`: Celery's prefork pool, and our stages.

A pool class, because Celery makes it in its worker alone (an application is imported by
web servers, beat and flower, too), starts it when all tasks are loaded, right before
the first fork, and gives it the whole configuration. All of it runs in the master, but
for the two `Worker` classes, whose instances are what each child runs.
"""

from __future__ import annotations

from typing import Any

from billiard import pool as billiard
from celery.concurrency import asynpool, prefork

from cowpreload.hosts.celery_child import ChildMixin
from cowpreload.hosts.celery_master import LOG, Master
from cowpreload.hosts.celery_settings import notes, settings_of

_TURN_SECONDS = 1.0


class AsynWorker(ChildMixin, asynpool.Worker):  # type: ignore[misc]
    """What a child runs where the broker has an event loop (Redis, RabbitMQ)."""


class BlockingWorker(ChildMixin, billiard.Worker):  # type: ignore[misc]
    """What a child runs where the broker has none (a file system, a database)."""


class PoolMixin:
    """Billiard's pool, each of whose children has a slot."""

    _cow: Master
    _cow_slot = 0
    _pool: list[Any]

    def __init__(self, *arguments: Any, cow: Master, **named: Any) -> None:
        self._cow = cow  # the next line forks already
        super().__init__(*arguments, **named)

    def WorkerProcess(self, worker: Any) -> Any:
        """A process that runs `worker`, which is to know its slot."""
        worker.cow_child = self._cow.child(self._cow_slot)
        return super().WorkerProcess(worker)  # type: ignore[misc]

    def _create_worker_process(self, i: int) -> Any:
        """Fork one child."""
        self._cow.free_gone({each.pid for each in self._pool})
        self._cow_slot = slot = self._cow.reserve()
        try:
            process = super()._create_worker_process(i)  # type: ignore[misc]
        except BaseException:
            self._cow.free(slot)
            raise
        self._cow.forked(process.pid, slot)
        return process


class AsynPool(PoolMixin, asynpool.AsynPool):  # type: ignore[misc]
    """Without threads."""

    Worker = AsynWorker

    @property
    def timers(self) -> dict[Any, float]:
        """What Celery's event loop calls again and again, every so many seconds."""
        return {**super().timers, self._cow.turn: _TURN_SECONDS}


class BlockingPool(PoolMixin, billiard.Pool):  # type: ignore[misc]
    """With threads."""

    Worker = BlockingWorker

    def _maintain_pool(self) -> None:
        """Called by a thread of the pool, about once a second."""
        super()._maintain_pool()
        self._cow.turn()


class TaskPool(prefork.TaskPool):  # type: ignore[misc]
    """Celery's prefork pool, over a heap that is frozen before the first fork."""

    Pool = AsynPool
    BlockingPool = BlockingPool
    _cow: Master | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Raises ImproperlyConfigured, with every fault of the settings."""
        super().__init__(*arguments, **named)
        self._cow_settings = settings_of(self.app.conf)

    def on_start(self) -> None:
        """Everything is loaded, and nothing is forked yet."""
        if not self.forking_enable:
            LOG.error(
                "cow: worker_pool_start_method is not fork: each child loads "
                "everything anew, and shares nothing; serving on without"
            )
            self.Pool = prefork.TaskPool.Pool
            self.BlockingPool = prefork.TaskPool.BlockingPool
        else:
            for line in notes(self.app.conf, self._cow_settings):
                LOG.warning(line)
            self._cow = self.options["cow"] = Master(self._cow_settings, self.limit)
            self._cow.prepare()
        super().on_start()

    def on_stop(self) -> None:
        """After a warm shutdown."""
        super().on_stop()
        self._cow_end()

    def on_terminate(self) -> None:
        """After a cold one."""
        super().on_terminate()
        self._cow_end()

    def _cow_end(self) -> None:
        if self._cow is not None:
            self._cow.end()
