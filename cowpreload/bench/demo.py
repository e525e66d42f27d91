"""`make demo`: the example site under both servers, before and after, side by side.

Takes nothing; gives one table on stdout (and its figures as JSON with --json FILE),
then leaves the site running under cow, unless DEMO_ONCE=1. Memory is what the kernel
shows of each mode alone, after the same requests. Rates are compared in pairs, both
servers of a host side by side and served in turn: a minute apart, the same server was
seen to differ by 30 % on a shared machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cowpreload import _core
from cowpreload.bench import server as bench
from cowpreload.bench.client import Load, LoadReport
from cowpreload.bench.demo_table import demo_table
from cowpreload.bench.server import Server, script, wait_until
from cowpreload.bench.site import WARMUP, browsing, find_site
from cowpreload.records import Reading

WORKERS = 4
ROUNDS = 4
REQUESTS = 500  # a round
PAIRS = 7
PAIR_REQUESTS = 200
GROW_MB = 250


@dataclass(frozen=True)
class Row:
    """One mode; sizes in bytes, `rate` relative to the plain host."""

    mode: str
    private: int
    shared: int
    total_pss: int
    wrong: int
    recyclings: int
    rate: float = 1.0


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


class Demo:
    """The four servers, one after the other, in one temporary directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.site = find_site()
        self.environ = {"SHOP_DB": str(directory / "shop.sqlite3")}
        self._empty = directory / "empty.py"
        self._empty.touch()
        self._plugins = directory / "plugins"
        self._started = 0

    def prepare(self) -> None:
        """Fill the database and build the plugin."""
        say("filling the database")
        subprocess.run(
            [sys.executable, "manage.py", "seed"],
            cwd=self.site,
            env={**os.environ, **self.environ},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        say("building the uWSGI plugin")
        subprocess.run(
            [script("cowpreload"), "plugin", "build", "--output", str(self._plugins)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _log(self) -> Path:
        self._started += 1
        return self.directory / f"server-{self._started}.log"

    def _gunicorn(self, *arguments: str) -> Server:
        log = self._log()
        return bench.gunicorn(
            ["--workers", str(WORKERS), *arguments, "shop.wsgi"],
            self.site,
            log,
            self.environ,
        )

    def _uwsgi(self, plugins: Path | None, **ini: str | Sequence[str]) -> Server:
        keys = {key.replace("_", "-"): value for key, value in ini.items()}
        return bench.uwsgi(
            {
                "module": "shop.wsgi",
                "processes": str(WORKERS),
                "need-app": "true",
                **keys,
            },
            self.site,
            self._log(),
            self.environ,
            plugins=plugins,
        )

    def start(self, mode: str) -> Server:
        """One of the four modes, serving."""
        if mode == "gunicorn --preload":
            server = self._gunicorn("--config", str(self._empty), "--preload")
        elif mode == "gunicorn cow":
            server = self._gunicorn("--config", "gunicorn.conf.py")
        elif mode == "uWSGI":
            server = self._uwsgi(None)
        else:
            server = self._uwsgi(
                self._plugins,
                cow_warmup=WARMUP,
                cow_max_private="200M",
                cow_max_private_hard="400M",
            )
        return server.wait_serving(workers=WORKERS)

    def measure(self, mode: str) -> Row:
        """Serve the same requests, then read every process."""
        say(f"{mode}: starting")
        with self.start(mode) as server:
            wrong = 0
            for number in range(ROUNDS):
                report = self.load(server, REQUESTS)
                wrong += report.wrong + report.failed
                say(f"{mode}: {(number + 1) * REQUESTS} requests, {report.rate:.0f}/s")
            readings = [_core.take_reading(pid) for pid in server.workers()]
            master = _core.take_reading(server.pid)
            recyclings = self._grow_one(server, mode)
        return Row(
            mode=mode,
            private=_median(readings, "private"),
            shared=_median(readings, "shared"),
            total_pss=master.pss + sum(each.pss for each in readings),
            wrong=wrong,
            recyclings=recyclings,
        )

    def load(self, server: Server, count: int) -> LoadReport:
        paths = browsing(server, count)
        load = Load(server.port, paths, requests=count, seconds=60)
        return load.start().finish()

    def compare(self, plain: str, ours: str) -> float:
        """Rate of `ours` relative to `plain`: median of pairs in both orders."""
        say(f"{ours} against {plain}: {PAIRS} pairs of {PAIR_REQUESTS} requests")
        with self.start(plain) as first, self.start(ours) as second:
            for server in (first, second):
                self.load(server, REQUESTS)
            ratios = []
            for number in range(PAIRS):
                order = (first, second) if number % 2 else (second, first)
                rates = {
                    id(each): self.load(each, PAIR_REQUESTS).rate for each in order
                }
                ratios.append(rates[id(second)] / rates[id(first)])
        say("ratios " + " ".join(f"{ratio:.2f}" for ratio in ratios))
        return statistics.median(ratios)

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


MODES = ("gunicorn --preload", "gunicorn cow", "uWSGI", "uWSGI cow")


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    names = ("django", "gunicorn", "uwsgi")
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": str(os.cpu_count()),
        **{name: version(name) for name in names},
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
        try:
            server.process.wait()
        except KeyboardInterrupt:
            say("stopping")


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cow-demo-") as name:
        demo = Demo(Path(name))
        demo.prepare()
        rows = [asdict(demo.measure(mode)) for mode in MODES]
        rows[1]["rate"] = demo.compare(MODES[0], MODES[1])
        rows[3]["rate"] = demo.compare(MODES[2], MODES[3])
        figures: dict[str, Any] = {
            **_versions(),
            "workers": WORKERS,
            "requests": ROUNDS * REQUESTS,
            "rows": rows,
        }
        if arguments.json:
            arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"\n{demo_table(figures).terminal()}\n\n{time.monotonic() - began:.0f} s")
        if any(row["wrong"] for row in rows):
            say("some answers were wrong or missing: see above")
            return 1
        if os.environ.get("DEMO_ONCE") != "1":
            leave_running(demo)
    return 0


if __name__ == "__main__":
    sys.exit(main())
