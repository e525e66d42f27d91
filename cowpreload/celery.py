"""Celery's prefork pool, whose children keep sharing what their master has loaded.

    app.conf.worker_pool = "cowpreload.celery:TaskPool"
    app.conf.cow_max_private = "200M"

Only the name that users write; the pool is hosts/celery.py.
"""

from __future__ import annotations

from cowpreload.hosts.celery import TaskPool

__all__ = ["TaskPool"]
