"""Memory of Celery's prefork pool: plain, frozen by hand, with ours.

    cd tools && ../build/venv-3.13/bin/python -m measure.celery_pool

A worker of tests/programs/celery_shop.py with 4 children, and a catalogue of 200,000
articles that 400 tasks read, a tenth of it each, over a broker of files with an event
loop. Gives the private and shared memory of a child (the mean), the PSS of all, and the
same of a child that has had no task yet; then how many children 40 tasks took with a
limit for each: Celery's own, which counts the shared memory too, and ours.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cowpreload import _core
from measure import common
from measure.common import Figures, mb

CHILDREN, ARTICLES = 4, 200_000
TASKS, LIMITED_TASKS = 400, 40
POOL = "worker_pool=cowpreload.celery:TaskPool"
PROGRAMS = Path(__file__).parent.parent.parent / "tests" / "programs"
# Mode: what is added to the configuration, and to the environment.
MODES: dict[str, tuple[str, dict[str, str]]] = {
    "prefork": ("", {}),
    "prefork, gc.freeze() by hand": ("", {"SHOP_FREEZES": "1"}),
    "cow": (POOL, {}),
}
LIMIT_MB = 100
LIMITS = {
    "prefork": f"worker_max_memory_per_child={LIMIT_MB * 1000}",
    "cow": f"{POOL} cow_max_private={LIMIT_MB}M",
}


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(int(each) for path in tasks for each in path.read_text().split())


def _until(condition: Any, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit("the worker did not become ready")
        time.sleep(0.05)


@contextlib.contextmanager
def _worker(conf: str, environ: dict[str, str]) -> Iterator[tuple[int, Any]]:
    """Its pid, and the application to send tasks by."""
    with tempfile.TemporaryDirectory() as directory:
        given = {"SHOP_DIRECTORY": directory, "SHOP_ARTICLES": str(ARTICLES), **environ}
        log = Path(directory, "worker.log")
        celery = str(Path(sys.executable).with_name("celery"))
        command = [celery, "-A", "celery_shop", "worker", "-c", str(CHILDREN)]
        command += ["-l", "INFO", "--without-gossip", "--without-mingle"]
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [*command, "--without-heartbeat"],
                cwd=PROGRAMS,
                env={**os.environ, **given, "SHOP_CONF": conf},
                stdout=output,
                stderr=output,
            )
        try:
            _until(lambda: " ready." in log.read_text() or worker.poll() is not None)
            os.environ.update(given, SHOP_ARTICLES="0")
            sys.path.insert(0, str(PROGRAMS))
            sys.modules.pop("celery_shop", None)
            import celery_shop  # type: ignore[import-not-found]

            yield worker.pid, celery_shop.app
        finally:
            worker.terminate()
            worker.wait(60)


def _run(app: Any, tasks: int, seen: Any) -> None:
    """So many tasks; `seen` is called after each result."""
    step = ARTICLES // 10
    results = [
        app.send_task("celery_shop.part", [i * 7919 % 10 * step]) for i in range(tasks)
    ]
    for each in results:
        each.get(timeout=120, interval=0.01)
        seen()


def _mean(found: list[Any], name: str) -> float:
    return mb(sum(getattr(each, name) for each in found) / len(found))


def _memory(conf: str, environ: dict[str, str]) -> Figures:
    with _worker(conf, environ) as (pid, app):
        fresh = [_core.take_reading(each) for each in _children(pid)]
        _run(app, TASKS, lambda: None)
        found = [_core.take_reading(each) for each in _children(pid)]
        total = sum(each.pss for each in [*found, _core.take_reading(pid)])
    return {
        "children": len(found),
        "fresh_private_mb": _mean(fresh, "private"),
        "private_mb": _mean(found, "private"),
        "shared_mb": _mean(found, "shared"),
        "total_pss_mb": mb(total),
    }


def _taken(conf: str) -> Figures:
    with _worker(conf, {}) as (pid, app):
        pids: set[int] = set()
        _run(app, LIMITED_TASKS, lambda: pids.update(_children(pid)))
    return {"limit_mb": LIMIT_MB, "children_taken": len(pids)}


def main() -> None:
    """Measure and print."""
    common.parser(__doc__).parse_args()
    figures: Figures = {}
    for mode, (conf, environ) in MODES.items():
        common.say(mode)
        figures[mode] = _memory(conf, environ)
        if mode in LIMITS:
            figures[mode].update(_taken(LIMITS[mode]))
    common.report("celery_pool", {"modes": figures})


if __name__ == "__main__":
    main()
