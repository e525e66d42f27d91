"""Run the ways: start, request, read, compare, one after the other; then side by side.

Takes a Plan; gives a Tried. Each way is alone while its memory is read: what another
server maps, too, would be counted half. Every server has ended when this returns,
however it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from cowpreload.bench.hall import Hall
from cowpreload.bench.observe import look
from cowpreload.bench.server import Server
from cowpreload.bench.site import Site
from cowpreload.capacity import capacity
from cowpreload.errors import NotFoundError, PluginBuildError
from cowpreload.tryout.logs import facts, tail
from cowpreload.tryout.pages import Pages
from cowpreload.tryout.records import Life, Limited, Measured, Plan, Room, Tried, Way
from cowpreload.tryout.side_by_side import side_by_side
from cowpreload.tryout.start import start, wait_serving
from cowpreload.tryout.why_one import why

Say = Callable[[str], None]
_FAILED = (RuntimeError, TimeoutError, PluginBuildError)


def run(
    plan: Plan, directory: Path, work: Path, versions: Mapping[str, str], say: Say
) -> Tried:
    """Run a plan for the application in `directory`; `work` is for logs and files.

    Raises:
        NotFoundError: plain workers cannot serve it; the text has their own error.
    """
    with Hall.closing(Site(directory, work, {}), say) as hall:
        return _Run(plan, hall, say).all(versions)


def room() -> Room:
    """What all workers may take here."""
    found = capacity()
    if found.is_group:
        return Room(found.limit, f"limit of {found.source}")
    return Room(found.limit - found.used, "free on this machine now")


class _Run:
    """One run of one plan."""

    def __init__(self, plan: Plan, hall: Hall, say: Say) -> None:
        self._hall, self._say = hall, say
        self._notes: list[str] = []
        self._pages = Pages(plan, self._notes.append)

    def all(self, versions: Mapping[str, str]) -> Tried:
        """Every way alone, then all side by side."""
        began, where = time.monotonic(), room()
        measured = {way.name: self._measure(way) for way in self._pages.plan.ways}
        serving = [each for each in measured.values() if not each.error]
        timed, limited = self._side_by_side(serving)
        measured |= {each.way.name: each for each in timed}
        return Tried(
            plan=self._pages.plan,
            ways=tuple(measured.values()),
            room=where,
            versions=versions,
            limited=tuple(limited),
            statuses=self._pages.statuses(),
            uncompared=self._pages.uncompared(),
            notes=tuple(self._notes),
            seconds=round(time.monotonic() - began, 1),
        )

    def _measure(self, way: Way) -> Measured:
        """One way alone, with each number of workers, the user's first."""
        made, wanted = Measured(way), self._pages.plan.workers
        counts = sorted(self._pages.plan.counts, key=lambda each: each != wanted)
        for workers in counts:
            self._say(f"{way.name}, {_workers(workers)}: starting")
            try:
                with start(self._hall, self._pages.plan, way, workers) as server:
                    made = self._one_life(made, server, workers)
            except _FAILED as error:
                self._unserved(way, str(error))
                made = replace(made, error=_error(error))
                break
        lives = sorted(made.lives, key=lambda each: each.workers)
        differences = tuple(self._pages.differences(way))
        return replace(made, lives=tuple(lives), differences=differences)

    def _one_life(self, made: Measured, server: Server, workers: int) -> Measured:
        way, plan = made.way, self._pages.plan
        wait_serving(server, plan, workers)
        if workers == plan.workers:
            self._pages.ask(way, server)
        requests = plan.requests_of(workers)
        self._say(f"{way.name}, {_workers(workers)}: {requests} requests")
        report = self._pages.load(server, self._pages.mix(requests))
        memory = look(server)
        life = Life(
            workers=workers,
            requests=requests,
            private=tuple(each.private for each in memory.workers),
            total_pss=memory.total_pss,
            wrong=report.wrong + report.failed,
        )
        made = replace(made, lives=(*made.lives, life))
        if workers == plan.workers and way.cow:
            made = replace(made, log=facts(server.log))
            if way.host == "gunicorn":
                made = replace(made, why=why(server, self._notes.append))
        return made

    def _unserved(self, way: Way, error: str) -> None:
        """What does not run without us is no question of ours."""
        plan = self._pages.plan
        if way == plan.ways[0]:
            raise NotFoundError(
                f"app={plan.app}: {way.name} does not serve it; its log ends with\n"
                f"{tail(error)}"
            )
        self._say(f"{way.name}: failed; the page says how")

    def _side_by_side(
        self, serving: list[Measured]
    ) -> tuple[list[Measured], list[Limited]]:
        workers = min(2, self._pages.plan.workers)
        pairs = self._pages.plan.pairs
        self._say(f"all side by side, {_workers(workers)} each: {pairs} blocks")
        try:
            return side_by_side(self._hall, self._pages, serving, workers)
        except _FAILED as error:
            self._notes.append(f"Side by side: {_error(error)}")
            return [], []


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _error(error: Exception) -> str:
    """Its first line, and the end of the log that it carries."""
    first, _, log = str(error).partition("\n")
    return f"{first}\n{tail(log)}" if log else first
