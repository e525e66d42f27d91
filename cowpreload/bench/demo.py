"""`make demo`: the example site under both servers, before and after, side by side.

Takes nothing; gives one table on stdout (and its figures as JSON with --json FILE),
then leaves the site running under cow, unless DEMO_ONCE=1. Memory is what the kernel
shows of each mode alone, after the same requests. Processor time is compared in pairs,
both servers of a host side by side and served in turn. Ctrl-C ends it at any moment,
with all servers and nothing left in /tmp.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cowpreload import _core
from cowpreload.bench import server as bench
from cowpreload.bench.client import LoadReport
from cowpreload.bench.demo_table import NO_PRELOAD, demo_table
from cowpreload.bench.hall import Hall, paired
from cowpreload.bench.interrupt import Interrupted, interruptible
from cowpreload.bench.observe import look, wait_quiet
from cowpreload.bench.scenarios.cpu import costs
from cowpreload.bench.server import Server, script, wait_until
from cowpreload.bench.site import FOUND_AND_LISTED, SKIPPED, browsing, find_site, seeded
from cowpreload.bench.stats import Figures
from cowpreload.records import Reading

WORKERS = 4
FEW = (1, 2)  # workers: what many a site has
ROUNDS = 4
REQUESTS = 500  # a round
PAIRS = 9
PAIR_REQUESTS = 300
GROW_MB = 250


@dataclass(frozen=True)
class Row:
    """One mode; sizes in bytes, `cpu` of a request relative to the plain host.

    Attributes:
        few: total PSS by the number of workers, of FEW.
    """

    mode: str
    private: int
    shared: int
    total_pss: int
    wrong: int
    recyclings: int
    few: dict[int, int]
    cpu: Figures | None = None


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


class Demo:
    """The servers, one after the other, in one hall."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    @classmethod
    @contextmanager
    def closing(cls) -> Iterator[Demo]:
        """A demo with a filled database; its servers and files are gone at the end."""
        say("filling the database")
        with seeded(find_site()) as site, Hall.closing(site) as hall:
            yield cls(hall)

    def _gunicorn(self, workers: int, *arguments: str) -> Server:
        return bench.gunicorn(
            ["--workers", str(workers), *arguments, "shop.wsgi"],
            self._hall.site.path,
            self._hall.log(),
            self._hall.site.environ,
        )

    def _uwsgi(
        self, workers: int, plugins: Path | None, **ini: str | Sequence[str]
    ) -> Server:
        keys = {key.replace("_", "-"): value for key, value in ini.items()}
        return bench.uwsgi(
            {
                "module": "shop.wsgi",
                "processes": str(workers),
                "need-app": "true",
                **keys,
            },
            self._hall.site.path,
            self._hall.log(),
            self._hall.site.environ,
            plugins=plugins,
        )

    def start(self, mode: str, workers: int = WORKERS) -> Server:
        """One of the modes, serving."""
        empty = ("--config", str(self._hall.empty()))
        if mode == NO_PRELOAD:
            server = self._gunicorn(workers, *empty)
        elif mode == "gunicorn --preload":
            server = self._gunicorn(workers, *empty, "--preload")
        elif mode == "gunicorn cow":
            server = self._gunicorn(workers, "--config", "gunicorn.conf.py")
        elif mode == "uWSGI":
            server = self._uwsgi(workers, None)
        else:
            server = self._uwsgi(
                workers,
                self._hall.plugins(),
                cow_warmup=FOUND_AND_LISTED,
                cow_warmup_skip=SKIPPED,
                cow_max_private="200M",
                cow_max_private_hard="400M",
            )
        self._hall.add(server).wait_serving(workers=workers)
        if mode == NO_PRELOAD:  # the others may load still
            wait_quiet(server)
        return server

    def measure(self, mode: str) -> Row:
        """Serve the same requests, then read every process."""
        say(f"{mode}: starting")
        with self.start(mode) as server:
            wrong = 0
            for number in range(ROUNDS):
                report = self.load(server, REQUESTS)
                wrong += report.wrong + report.failed
                say(f"{mode}: {(number + 1) * REQUESTS} requests")
            readings = [_core.take_reading(pid) for pid in server.workers()]
            master = _core.take_reading(server.pid)
            recyclings = self._grow_one(server, mode)
        few = {workers: self._few(mode, workers) for workers in FEW}
        return Row(
            mode=mode,
            private=_median(readings, "private"),
            shared=_median(readings, "shared"),
            total_pss=master.pss + sum(each.pss for each in readings),
            wrong=wrong,
            recyclings=recyclings,
            few=few,
        )

    def _few(self, mode: str, workers: int) -> int:
        """Total PSS of fewer workers, after the same requests each."""
        say(f"{mode}: with {workers} of {WORKERS} workers")
        with self.start(mode, workers) as server:
            self.load(server, ROUNDS * REQUESTS * workers // WORKERS)
            return look(server).total_pss

    def load(self, server: Server, count: int) -> LoadReport:
        return self._hall.load(server, browsing(server, count))

    def compare(self, plain: str, ours: str) -> Figures:
        """Processor time of a request under `ours`, relative to `plain`."""
        say(f"{ours} against {plain}: {PAIRS} pairs of {PAIR_REQUESTS} requests")
        with self.start(plain) as first, self.start(ours) as second:
            for server in (first, second):
                self.load(server, REQUESTS)
            blocks = [browsing(first, PAIR_REQUESTS)] * PAIRS
            return costs(*paired(self._hall, first, second, blocks))

    def _grow_one(self, server: Server, mode: str) -> int:
        """Let one worker leak; how many workers were recycled for it."""
        say(f"{mode}: one worker grows by {GROW_MB} MB")
        server.get(f"/probe/grow/?mb={GROW_MB}")
        if "cow" not in mode:
            return 0
        wait_until(lambda: " recycled " in server.log, 40, "recycling")
        return server.log.count(" recycled ")


def _median(readings: Sequence[Reading], name: str) -> int:
    return int(statistics.median(getattr(each, name) for each in readings))


PRELOADED = ("gunicorn --preload", "gunicorn cow", "uWSGI", "uWSGI cow")
MODES = (NO_PRELOAD, *PRELOADED)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    names = ("django", "gunicorn", "uwsgi")
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": str(os.cpu_count()),
        **{name: version(name) for name in names},
    }


def measure_all(demo: Demo) -> dict[str, Any]:
    """The figures of all modes, as the JSON has them."""
    rows = {mode: demo.measure(mode) for mode in MODES}
    for plain, ours in (PRELOADED[:2], PRELOADED[2:]):
        rows[ours] = replace(rows[ours], cpu=demo.compare(plain, ours))
    return {
        **_versions(),
        "workers": WORKERS,
        "requests": ROUNDS * REQUESTS,
        "rows": [asdict(row) for row in rows.values()],
    }


def leave_running(demo: Demo) -> None:
    """Serve until the user ends it."""
    with demo.start("gunicorn cow") as server:
        print(
            f"\nThe shop runs under cow at http://127.0.0.1:{server.port}/ "
            f"(try /probe/me/ and /probe/grow/?mb=250).\n"
            f"See its workers:  {script('cowpreload')} status {server.pid}\n"
            f"Stop it:          Ctrl-C here, or kill {server.pid}",
            flush=True,
        )
        server.process.wait()


def run(path: Path | None) -> int:
    """All of the demo; 1 if an answer was wrong or missing."""
    began = time.monotonic()
    with Demo.closing() as demo:
        figures = measure_all(demo)
        if path:
            path.write_text(json.dumps(figures, indent=1) + "\n")
        print(
            f"\n{demo_table(figures).terminal()}\n\n{time.monotonic() - began:.0f} s",
            flush=True,
        )
        if any(row["wrong"] for row in figures["rows"]):
            say("some answers were wrong or missing: see above")
            return 1
        if os.environ.get("DEMO_ONCE") != "1":
            leave_running(demo)
    return 0


def main() -> int:
    """Run the demo; 128 + the signal that ended it."""
    try:
        with interruptible():
            parser = argparse.ArgumentParser(description=__doc__)
            parser.add_argument("--json", type=Path, help="write the figures here")
            return run(parser.parse_args().json)
    except Interrupted as stopped:
        say("stopped: every server has ended")
        return 128 + int(stopped.args[0])


if __name__ == "__main__":
    sys.exit(main())
