"""From the verdict to the next worker ready: how long a slot serves nothing.

The example site at its default size on gunicorn (sync) and on uWSGI, two workers with
everything at its default but the limit and what delays a verdict. /probe/grow/ takes a
worker over its limit; the board is polled each ms for LEAVING, then for READY of the
slot's next generation, whose times the worker writes itself. Times in ms: `to_end`
until the worker has ended, `to_fork` until the next is forked (on gunicorn: about to
be), `to_ready` until it can serve. The worker is idle at the verdict: a request in
flight comes on top.
"""

from __future__ import annotations

import subprocess
import threading
import time
from functools import partial
from pathlib import Path

from cowpreload import _core
from cowpreload.bench import server as bench
from cowpreload.bench.server import Server, script
from cowpreload.board import Board, open_board
from measure import common
from measure.common import Figures, Site, spread

WORKERS = 2
GROW_MB = 64
SETTINGS = {
    "cow_max_private": "64M",
    "cow_strikes": "1",
    "cow_min_lifetime": "0",
    "cow_jitter": "0",
}
READY: int = _core.lib.COW_READY


def _gunicorn(site: Site) -> Server:
    return common.gunicorn(site, WORKERS, **SETTINGS)


def _uwsgi(site: Site, plugins: Path) -> Server:
    ini = {
        "module": "shop.wsgi",
        "need-app": "true",
        "processes": str(WORKERS),
        "cow-warmup": common.WARMUP,
        **{name.replace("_", "-"): value for name, value in SETTINGS.items()},
    }
    log = site.directory / "uwsgi.log"
    return bench.uwsgi(ini, site.path, log, site.environ, plugins=plugins)


def _plugins(site: Site) -> Path:
    folder = site.directory / "plugins"
    command = [script("cowpreload"), "plugin", "build", "--output", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def _leaving(board: Board, seconds: float = 30.0) -> tuple[int, int, int]:
    """Wait for a worker that leaves: its slot's index, its pid, when it began (ms)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        now: int = _core.lib.cow_now_ms()
        for index in range(WORKERS):
            row = board.raw.slot[index]
            if row.life.state == _core.LEAVING:
                return index, row.life.pid, now
        time.sleep(0.001)
    raise TimeoutError(f"no worker left within {seconds:g} s")


def _recycle(server: Server, board: Board) -> tuple[float, float, float]:
    """Take one worker over its limit: ms to its end, to the next fork, to ready."""
    generations = [board.raw.slot[index].life.generation for index in range(WORKERS)]
    path = f"/probe/grow/?mb={GROW_MB}"
    grow = threading.Thread(target=server.get, args=(path,))
    grow.start()  # beside the polling: the verdict can come before the answer
    try:
        index, pid, leaving_at = _leaving(board)
        while bench.alive(pid):
            time.sleep(0.001)
        ended_at: int = _core.lib.cow_now_ms()
    finally:
        grow.join()
    row = board.raw.slot[index]
    bench.wait_until(
        lambda: row.life.generation > generations[index] and row.life.state == READY,
        60,
        f"slot {index + 1} to be ready again",
    )
    times = (ended_at, row.life.booted_at_ms, row.life.ready_at_ms)
    to_end, to_fork, to_ready = (float(each - leaving_at) for each in times)
    return to_end, to_fork, to_ready


def _measure(server: Server, times: int, pause: float) -> Figures:
    server.wait_serving(workers=WORKERS)
    board = open_board(server.pid)
    bench.wait_until(
        lambda: all(board.raw.slot[i].life.state == READY for i in range(WORKERS)),
        30,
        "workers to be ready",
    )
    taken = []
    for _ in range(times):
        time.sleep(pause)
        taken.append(_recycle(server, board))
    names = ("to_end_ms", "to_fork_ms", "to_ready_ms")
    return {
        name: spread(values, 1)
        for name, values in zip(names, zip(*taken, strict=True), strict=True)
    }


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--times", type=int, default=20, help="recyclings, each host")
    parser.add_argument(
        "--pause",
        type=float,
        default=2.5,
        help="seconds between two (uWSGI sleeps if workers follow each other faster)",
    )
    arguments = parser.parse_args()
    with common.example_site(arguments.site) as site:
        plugins = _plugins(site)
        figures: Figures = {}
        for name, start in (
            ("gunicorn_sync", partial(_gunicorn, site)),
            ("uwsgi", partial(_uwsgi, site, plugins)),
        ):
            common.say(f"respawn_time: {name}, {arguments.times} recyclings")
            with start() as server:
                figures[name] = _measure(server, arguments.times, arguments.pause)
    common.report("respawn_time", figures)


if __name__ == "__main__":
    main()
