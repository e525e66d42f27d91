"""The hall where the modes meet: one site, one plugin, servers that all end.

Takes modes, gives running servers. Whatever was started here has been ended and reaped
when `closing` returns, however the scenario came to its end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cowpreload import plugin_build
from cowpreload.bench import server as bench
from cowpreload.bench.cgroup import Cgroup
from cowpreload.bench.client import Load, LoadReport
from cowpreload.bench.journal import say
from cowpreload.bench.mode import Mode
from cowpreload.bench.observe import cpu_seconds
from cowpreload.bench.server import Server, script
from cowpreload.bench.site import Site

LOADS = 600.0  # seconds that one load may take at most


@dataclass(frozen=True)
class Block:
    """One block of requests, served by one server.

    Attributes:
        report: what became of them.
        cpu: seconds of processor time that the whole server took for it.
    """

    report: LoadReport
    cpu: float

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of processor time a request that was answered right."""
        return 1000 * self.cpu / self.report.right if self.report.right else 0.0


class Hall:
    """Starts the modes of one run on one site.

    Attributes:
        site: what is served.
        wrong: answers that were wrong or missing, over all loads not told otherwise.
    """

    def __init__(self, site: Site, say: Callable[[str], None] = say) -> None:
        self.site = site
        self._say = say
        self.wrong = 0
        self._running: list[Server] = []
        self._plugins: Path | None = None
        self._started = 0

    @classmethod
    @contextlib.contextmanager
    def closing(cls, site: Site, say: Callable[[str], None] = say) -> Iterator[Hall]:
        """A hall whose servers are all ended at last."""
        hall = cls(site, say)
        try:
            yield hall
        finally:
            for server in hall._running:
                # Not one that has ended: its pids may be others' by now.
                if server.process.returncode is None:
                    server.stop()

    def plugins(self) -> Path:
        """The folder of the uWSGI plugin, which is built when it is first needed."""
        if self._plugins is None:
            self._say("building the uWSGI plugin")
            directory = self.site.directory / "plugins"
            plugin_build.build(script("uwsgi"), directory)
            self._plugins = directory
        return self._plugins

    def log(self) -> Path:
        """A fresh path for a server's log."""
        self._started += 1
        return self.site.directory / f"server-{self._started}.log"

    def empty(self) -> Path:
        """A configuration of gunicorn; else it reads the site's own, by its name."""
        path = self.site.directory / "empty.py"
        path.touch()
        return path

    def add(self, server: Server) -> Server:
        """Take care of the end of `server`."""
        self._running.append(server)
        return server

    def start(
        self,
        mode: Mode,
        workers: int,
        environ: Mapping[str, str] | None = None,
        cgroup: Cgroup | None = None,
    ) -> Server:
        """Start one server; it may not serve yet. Use it in a `with`."""
        environ = {
            **self.site.environ,
            "BENCH_ATTEMPT": mode.attempt,
            **dict(mode.settings),
            **(environ or {}),
        }
        prefix = cgroup.prefix if cgroup else ()
        if mode.host == "gunicorn":
            return self.add(self._gunicorn(mode, workers, environ, prefix))
        return self.add(self._uwsgi(mode, workers, environ, prefix))

    def _gunicorn(
        self,
        mode: Mode,
        workers: int,
        environ: Mapping[str, str],
        prefix: Sequence[str],
    ) -> Server:
        arguments = ["--config", str(self.empty()), "--workers", str(workers)]
        arguments += ["--timeout", "300"]  # loading 1 GB takes its time
        arguments += ["--worker-class", "cow"] if mode.cow else []
        arguments += ["--preload"] if mode.preload else []
        arguments.append(mode.program)
        return bench.gunicorn(
            arguments, self.site.path, self.log(), environ, prefix=prefix
        )

    def _uwsgi(
        self,
        mode: Mode,
        workers: int,
        environ: Mapping[str, str],
        prefix: Sequence[str],
    ) -> Server:
        ini = {
            "module": mode.program,
            "processes": str(workers),
            "need-app": "true",
        }
        if not mode.preload:
            ini["lazy-apps"] = "true"
        return bench.uwsgi(
            ini,
            self.site.path,
            self.log(),
            environ,
            plugins=self.plugins() if mode.cow else None,
            prefix=prefix,
        )

    def load(
        self,
        server: Server,
        paths: Sequence[str],
        *,
        concurrency: int = 4,
        may_fail: bool = False,
    ) -> LoadReport:
        """Request every path once, check each answer, count what was not right."""
        report = (
            Load(
                server.port,
                paths,
                requests=len(paths),
                seconds=LOADS,
                concurrency=concurrency,
            )
            .start()
            .finish()
        )
        if not may_fail and report.wrong + report.failed:
            self.wrong += report.wrong + report.failed
            self._say(f"NOT RIGHT: {report.errors[:3]}; log {server.log_path}")
        return report


def paired(
    hall: Hall,
    first: Server,
    second: Server,
    blocks: Sequence[Sequence[str]],
    *,
    may_fail: bool = False,
) -> tuple[list[Block], list[Block]]:
    """Serve each block from both, side by side and in changing order."""
    one, two = in_turn(partial(hall.load, may_fail=may_fail), (first, second), blocks)
    return one, two


def in_turn(
    load: Callable[[Server, Sequence[str]], LoadReport],
    servers: Sequence[Server],
    blocks: Sequence[Sequence[str]],
) -> list[list[Block]]:
    """Serve each block from every server, another one first each time; a list each.

    A minute apart, the same server was seen to differ by 30 % on a shared machine: only
    the ratio of two figures of one block means something.
    """
    given: list[list[Block]] = [[] for _ in servers]
    served = list(zip(servers, given, strict=True))
    for number, paths in enumerate(blocks, start=1):
        turn = number % len(served)
        for server, its in served[turn:] + served[:turn]:
            before = cpu_seconds(server)
            report = load(server, paths)
            its.append(Block(report, cpu_seconds(server) - before))
    return given
