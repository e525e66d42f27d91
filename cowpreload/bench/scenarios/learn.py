"""A server that nobody tells what to warm: what it finds out, and what that brings.

The example shop with `cow-warmup = auto` and nothing else, against no warm up and
against the hand-written list. Memory over time: a server that warms up anew from its
traffic begins as one without a warm up, and has to come to where the list begins.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cowpreload import _core, warmings
from cowpreload.bench.hall import Hall
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.lines import Lines
from cowpreload.bench.mode import HOSTS, WARM, Mode
from cowpreload.bench.observe import look, stat, wait_forked, wait_quiet
from cowpreload.bench.scenarios import Options
from cowpreload.bench.server import Server
from cowpreload.bench.site import browsing
from cowpreload.bench.stats import Figures
from cowpreload.board import open_board

METHOD = (
    "The example shop without its probes; 4 workers. `cold` warms nothing, `list` four "
    "paths that a person wrote, `auto` what the server finds: its routes at the start, "
    "its traffic while it runs. `hidden` is auto where the application gives no "
    "routes, `file` the second start of such a server, with cow-warmup-file. A burst "
    "of requests each second, every answer checked; after it the memory of all "
    "processes, by smaps_rollup. Busy is what the master took for warm ups, on the "
    "clock, by its own record (cowpreload status). The master's memory is all of it, "
    "before the first burst and after the last."
)
AUTO = ("COW_WARMUP", "auto")
SITE = "shop.wsgi"
# A function around the site: of this one, no routes are known.
HIDDEN = "cowpreload.bench.programs.attempts"
FILE = "COW_WARMUP_FILE"


@dataclass(frozen=True)
class Plan:
    """The numbers of one size.

    Attributes:
        bursts: how many, of `burst` requests each.
        pace: seconds from one to the next, if the server is fast enough.
        environ: of the site, and settings that make it quicker.
        seconds: what the whole takes on a machine of 2 cores, about.
        only: keys of the modes that are measured; none: all.
    """

    bursts: int
    burst: int
    pace: float
    environ: tuple[tuple[str, str], ...]
    seconds: int
    workers: int = 4
    only: tuple[str, ...] = ()


NO_PROBES = ("SHOP_PROBES", "0")
# A second is a tenth of one, and little is worth a warm up.
SOON = (
    *(("COW_CHECK_INTERVAL", "0.1"), ("COW_MIN_LIFETIME", "0")),
    *(("COW_JITTER", "0"), ("COW_WARMUP_WORTH", "2M")),
)
FEW = tuple(f"{host} {name}" for host in HOSTS for name in ("cold", "list", "hidden"))


def _small(megabytes: str) -> tuple[tuple[str, str], ...]:
    return (NO_PROBES, ("SHOP_CATALOGUE_MB", megabytes), ("SHOP_NELSON", "0"), *SOON)


PLANS = {
    "full": Plan(60, 15, 1.0, (NO_PROBES,), 800),
    "quick": Plan(24, 25, 0.3, _small("40"), 50, 2, FEW[:3]),
    "tiny": Plan(
        *(16, 20, 0.2, _small("5"), 15, 2), only=("gunicorn cold", "gunicorn hidden")
    ),
}


def modes(host: str) -> tuple[Mode, ...]:
    """Without and with a list, and what finds one."""

    def mode(name: str, about: str, program: str, *settings: tuple[str, str]) -> Mode:
        return Mode(name, host, about, cow=True, settings=settings, program=program)

    return (
        mode("cold", "no warm up", SITE),
        mode("list", "four paths, written by hand", SITE, WARM),
        mode("auto", "nothing but cow-warmup = auto", SITE, AUTO),
        mode("hidden", "auto, no routes known", HIDDEN, AUTO),
        mode("file", "auto, no routes known, second start", HIDDEN, AUTO),
    )


MODES = tuple(mode for host in HOSTS for mode in modes(host))


def _burst(hall: Hall, server: Server, paths: Sequence[str], until: float) -> int:
    """Requests that were lost of these; returns no sooner than `until`."""
    report = hall.load(server, paths)
    time.sleep(max(0.0, until - time.monotonic()))
    return report.wrong + report.failed


def _master(server: Server) -> int:
    reading = _core.take_reading(server.pid)
    return reading.private + reading.evictable + reading.shared


def measure(hall: Hall, mode: Mode, plan: Plan, environ: dict[str, str]) -> Figures:
    """One life of one server."""
    lines, seconds, lost = Lines(plan.workers), [0.0], 0
    with hall.start(mode, plan.workers, dict(plan.environ) | environ) as server:
        wait_forked(server, plan.workers)
        wait_quiet(server)
        lines.add(look(server))
        master = _master(server)
        server.wait_serving(workers=plan.workers, seconds=300)
        paths = browsing(server, plan.bursts * plan.burst)
        ticks, began = stat(server.pid).ticks, time.monotonic()
        for number in range(plan.bursts):
            some = paths[number * plan.burst :][: plan.burst]
            until = began + (number + 1) * plan.pace
            lost += _burst(hall, server, some, until)
            lines.add(look(server))
            seconds.append(round(time.monotonic() - began, 2))
        found = [_said(each) for each in warmings.read(open_board(server.pid))]
        after, worked = _master(server), stat(server.pid).ticks - ticks
    return {
        "seconds": seconds,
        **lines.figures(),
        "warmings": found,
        "lost": lost,
        "master": [master, after],
        "master_ticks": worked,
    }


def _said(warming: Any) -> Figures:
    found = asdict(warming)
    del found["age"]
    return {**found, "pages": dict(warming.pages)}


def run(hall: Hall, journal: Journal, plan: Plan, options: Options) -> None:
    """Every mode; `file` after a first start that learns."""
    for mode in MODES:
        if plan.only and mode.key not in plan.only:
            continue
        say(f"learn: {mode.shown}: {plan.bursts} bursts of {plan.burst}")
        environ: dict[str, str] = {}
        if mode.name == "file":
            path = hall.site.directory / f"learned-{mode.host}"
            environ[FILE] = str(path)
        try:
            if environ:
                measure(hall, mode, plan, environ)
            found = measure(hall, mode, plan, environ)
        except (RuntimeError, TimeoutError, OSError) as error:
            hall.wrong += 1
            journal.note(f"{mode.shown}: failed: {error}")
            continue
        about = {"name": mode.name, "host": mode.host, "about": mode.about}
        journal.put("modes", mode.key, value={**about, **found})
