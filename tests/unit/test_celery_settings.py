"""Celery's configuration: our names in it, with and without a namespace."""

from __future__ import annotations

import pytest

celery = pytest.importorskip("celery")

from billiard import get_context  # noqa: E402
from celery.exceptions import ImproperlyConfigured  # noqa: E402

from cowpreload.hosts.celery import BlockingWorker  # noqa: E402
from cowpreload.hosts.celery_child import Child  # noqa: E402
from cowpreload.hosts.celery_settings import notes, settings_of  # noqa: E402
from cowpreload.settings import Settings  # noqa: E402


def test_names_are_those_of_gunicorns_file() -> None:
    app = celery.Celery("names")
    app.conf.cow_max_private = "200M"
    app.conf.update(cow_strikes=5, cow_hot_code=False)
    found = settings_of(app.conf)
    assert (found.max_private, found.strikes, found.hot_code) == (200 << 20, 5, "off")


def test_a_namespace_of_django_settings_is_read() -> None:
    class Django:
        CELERY_COW_MAX_PRIVATE = "200M"
        CELERY_TASK_TIME_LIMIT = 5
        COW_MAX_PRIVATE = "100M"  # not Celery's

    app = celery.Celery("namespace")
    app.config_from_object(Django(), namespace="CELERY")
    assert app.conf.task_time_limit == 5
    assert settings_of(app.conf).max_private == 200 << 20


def test_all_faults_are_told_at_once() -> None:
    app = celery.Celery("faults")
    app.conf.update(cow_strikes=0, cow_max_privat="1G", cow_warmup="/")
    with pytest.raises(ImproperlyConfigured) as caught:
        settings_of(app.conf)
    text = str(caught.value)
    assert "strikes=0: is too low" in text
    assert "cow_max_privat: no such setting; did you mean cow_max_private?" in text
    assert "cow_warmup: a setting for gunicorn and uwsgi alone" in text


def test_the_web_servers_part_of_an_environment_is_not_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COW_MAX_PRIVATE", "300M")
    monkeypatch.setenv("COW_WARMUP", "no path")
    monkeypatch.setenv("COW_EXIT", "normal")  # would keep the heap mortal
    found = settings_of(celery.Celery("environment").conf)
    assert found.max_private == 300 << 20
    assert (found.warmup, found.exit) == ((), "fast")


def test_celerys_own_limit_counts_what_is_shared() -> None:
    app = celery.Celery("limit")
    assert notes(app.conf, settings_of(app.conf)) == []
    app.conf.worker_max_memory_per_child = 200_000
    (line,) = notes(app.conf, settings_of(app.conf))
    assert "worker_max_memory_per_child=200000" in line


def test_an_idle_child_hears_of_a_restart_of_the_pool() -> None:
    """billiard's own looks for it once a second; ours waited for a task for ever."""
    context, settings = get_context("fork"), Settings(check_interval=0.01)
    worker = BlockingWorker.__new__(BlockingWorker)
    worker.inq, worker.outq = context.SimpleQueue(), context.SimpleQueue()
    worker.synq, worker._shutdown = None, context.Event()
    worker.cow_child = Child(None, 0, settings, settings.limits(1, graceful=0))
    worker._make_child_methods()
    assert worker.wait_for_job() is None
    worker._shutdown.set()
    with pytest.raises(SystemExit):
        worker.wait_for_job()
