"""Ways to serve one loaded application: each forks one worker and measures it.

Takes a loaded application and the pages that its workers are to serve; gives a Worker
each way: `preload` (as --preload alone: nothing is frozen), `cold` (frozen, without a
warm-up) and `warm`. The first two are tried in a fork of the process, so that the
third, in the process itself, finds everything as it was loaded, threads too.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from cowpreload import _core, callbacks, collector, mending, writers
from cowpreload.candidates import Candidate
from cowpreload.closing import close_all
from cowpreload.deadline import Bounds, unsaid
from cowpreload.doctor.importing import Imports
from cowpreload.errors import said
from cowpreload.freezing import freeze, thaw
from cowpreload.hosts.laying import Laying
from cowpreload.immortal import plan
from cowpreload.records import FreezeReport, SealReport
from cowpreload.sealing import seal
from cowpreload.settings import Settings
from cowpreload.trial_child import private_memory
from cowpreload.units import MIB
from cowpreload.warmup import why_dropped
from cowpreload.warmup_visits import Manner, visit

Send = Callable[..., None]
# An import that takes less is no line of code to change.
_WORTH = MIB // 4


@dataclass(frozen=True)
class Work:
    """What a worker is to do.

    Attributes:
        pages: that it serves, in turn.
        requests: all in all.
        seconds: after which it goes on to no further request.
        page_seconds: that one may take.
        held: waits until somebody has looked at the worker that is alive.
    """

    app: Callable[..., Any]
    manner: Manner
    pages: Sequence[Candidate]
    requests: int
    seconds: float
    page_seconds: float
    send: Send
    held: Callable[[], object]


def close_before_fork() -> None:
    """What the hosts do before a fork."""
    callbacks.run_before()
    thaw()
    close_all()
    writers.flush_shared()
    mending.prepare()


def freeze_and_seal(
    settings: Settings, laying: Laying
) -> tuple[FreezeReport, SealReport, str]:
    """The stages right before the fork, and why the heap stays mortal, or ""."""
    walk, why_mortal = plan(settings)
    frozen = freeze(walk, laying.look)
    if settings.seal == "off":
        return frozen, SealReport(), why_mortal
    return frozen, seal().after(laying.filled), why_mortal


def branch(way: str, settings: Settings, work: Work) -> None:
    """Try one way in a fork of this process; what it holds is as before."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return

    def master() -> None:
        collector.unfreeze()
        if way != "preload":
            close_before_fork()
            freeze_and_seal(settings, Laying(settings, writers.remember))
        else:
            mending.prepare()
        worker(way, work)

    _end_after(master, parent, work.send)


def worker(way: str, work: Work) -> None:
    """Fork one, wait until it has served, reported and ended."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    _end_after(lambda: _serve(way, work), parent, work.send)


def _end_after(task: Callable[[], None], parent: int, send: Send) -> NoReturn:
    """In a child: do it and end, whatever it raises; say what that is."""
    try:
        _core.end_with(parent)
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        task()
    except BaseException as error:  # noqa: BLE001 - of the application
        send(failed=said(error))
    finally:
        os._exit(0)


def _serve(way: str, work: Work) -> None:
    work.send(phase=f"serving, {way}")
    callbacks.run_after()
    imports = Imports()
    served: dict[Candidate, dict[str, Any]] = {}
    count = 0
    until = time.monotonic() + work.seconds
    before = private_memory()

    def wanted() -> Iterator[Candidate]:
        nonlocal before
        while work.pages:
            for each in work.pages:
                imports.path = each.shown
                before = private_memory() if each not in served else 0
                yield each

    def answered(page: Candidate, status: int, error: BaseException | None) -> bool:
        nonlocal count
        count += 1
        if page not in served:
            grown = max(0, private_memory() - before)
            dropped = why_dropped(status, error)
            served[page] = {"path": page.shown, "status": status, "private": grown}
            served[page]["dropped"] = dropped
        return count < work.requests and time.monotonic() < until

    if work.pages:
        bounds = Bounds(work.page_seconds, unsaid, fatal=False, ends=False)
        visit(work.app, wanted(), work.manner, bounds, answered)
    reading = _core.take_reading()
    work.send(
        worker={
            "way": way,
            "pid": os.getpid(),
            "private": reading.private,
            "shared": reading.shared,
            "pss": reading.pss,
            "requests": count,
            "pages": list(served.values()),
            "imports": [asdict(each) for each in imports.found if each.bytes >= _WORTH],
        }
    )
    if way == "warm":
        work.send(held=os.getpid())
        work.held()
