"""What a real application takes: preloaded, frozen, sealed, with its hot code laid.

    python -m measure.applications wagtail    # or another of measure.recipes

4 workers of gunicorn, the same requests by a signed-in user for each mode. Gives, for
each mode, private memory of each worker and total PSS in MB, each server by itself;
then, all modes side by side, milliseconds of processor time a request in blocks that
each serves in turn, and the ratio to preload in each block. An answer other than 200
ends it: there are no figures of a page that failed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
from collections.abc import Iterator

from cowpreload.bench import server
from cowpreload.bench.client import Load
from cowpreload.bench.observe import cpu_seconds, look
from cowpreload.bench.server import Server
from measure import common
from measure.common import Figures, mb, say, spread
from measure.recipes import RECIPES, Installed

WORKERS = 4
REQUESTS = 300
BLOCKS, BLOCK = 5, 40
PRELOAD = "preload"
MODES = {
    PRELOAD: ("--preload",),
    "unsealed": ("--cow-seal", "off"),
    "sealed": ("--cow-hot-code", "off"),
    "cow": (),
}


class Measured:
    """One application, its servers and what they answered."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._site = Installed(name)
        self._site.install()
        cookie = self._site.cookie()
        self._headers = {"Cookie": cookie} if cookie else {}
        self._started = itertools.count(1)

    def _arguments(self, mode: str) -> Iterator[str]:
        yield from ("--workers", str(WORKERS), "--timeout", "300", *MODES[mode])
        if mode != PRELOAD:
            yield from ("--worker-class", "cow")
            for path in self._site.recipe.paths:
                yield from ("--cow-warmup", path)
            for name, value in self._headers.items():
                yield from ("--cow-warmup-header", f"{name}: {value}")
        yield self._site.recipe.app

    def start(self, mode: str) -> Server:
        """One server that serves; use it in a `with`."""
        log = self._site.home / f"{mode}-{next(self._started)}.log"
        log.unlink(missing_ok=True)
        started = server.gunicorn(
            list(self._arguments(mode)),
            self._site.data,
            log,
            self._site.environ,
            python=str(self._site.python),
        )
        try:
            started.wait_serving(self._site.recipe.ready, WORKERS, seconds=300)
        except BaseException:
            started.kill()
            raise
        return started

    def load(self, served: Server, requests: int) -> None:
        paths, headers = self._site.recipe.paths, self._headers
        load = Load(served.port, paths, requests=requests, headers=headers)
        report = load.start().finish()
        if report.errors:
            sys.exit(f"{self._name}: {report.errors[:3]}; log {served.log_path}")

    def memory(self, mode: str) -> Figures:
        """MB of a server that nothing else shares pages with."""
        say(f"{self._name}: memory: {mode}")
        with self.start(mode) as served:
            self.load(served, REQUESTS)
            found = look(served)
        private = [mb(each.private) for each in found.workers]
        return {"private_mb": private, "pss_mb": mb(found.total_pss)}

    def costs(self) -> dict[str, Figures]:
        """Processor time a request; each block goes to every server, in turn first."""
        say(f"{self._name}: processor time: {BLOCKS} blocks")
        times: dict[str, list[float]] = {mode: [] for mode in MODES}
        with contextlib.ExitStack() as stack:
            servers = {mode: stack.enter_context(self.start(mode)) for mode in MODES}
            for served in servers.values():
                self.load(served, BLOCK)
            for number in range(BLOCKS):
                order = list(servers)[number % len(servers) :] + list(servers)
                for mode in order[: len(servers)]:
                    before = cpu_seconds(servers[mode])
                    self.load(servers[mode], BLOCK)
                    took = cpu_seconds(servers[mode]) - before
                    times[mode].append(1000 * took / BLOCK)
        return {mode: self._cost(times[PRELOAD], times[mode]) for mode in MODES}

    @staticmethod
    def _cost(plain: list[float], ours: list[float]) -> Figures:
        ratios = [one / other for one, other in zip(ours, plain, strict=True)]
        return {"cpu_ms": spread(ours, 2), "ratio": spread(ratios)}

    def figures(self) -> dict[str, Figures]:
        """All of it, by mode."""
        memory = {mode: self.memory(mode) for mode in MODES}
        costs = self.costs()
        return {mode: {**memory[mode], **costs[mode]} for mode in MODES}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=RECIPES)
    name = parser.parse_args().name
    common.end_cleanly()
    figures = {
        "installed": RECIPES[name].packages[0],
        "workers": WORKERS,
        "requests": REQUESTS,
        "block": BLOCK,
        "modes": Measured(name).figures(),
    }
    common.report("applications", figures)


if __name__ == "__main__":
    main()
