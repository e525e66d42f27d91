"""What the watching threads take of a core: eight workers of 256 MiB resident each.

gunicorn with `cow` workers on the example site. The threads named cow-watch are summed
by the first field of /proc/PID/task/TID/schedstat, ns on a processor, over each phase;
figures are in percent of one core for all eight together, with the full readings that
the board shows, a worker and second. Phases: `far` from the limit, and `near` it
(private memory 1 to 2 MiB below), each idle and under load; `over` it without being
recycled, so that every look is a full reading: the most that watching can cost; and
`hard`, 20 to 40 MiB below a hard limit, which is looked at 20 times a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from cowpreload import _core
from cowpreload.bench.client import Load
from cowpreload.bench.server import Server
from cowpreload.board import Board, open_board
from measure import common
from measure.common import Figures, Site, mix

WORKERS = 8
MIB = 1 << 20
RESIDENT = 256 * MIB
NEAR_LIMIT = 110 * MIB
MARGIN = MIB
HARD_MARGIN = 40 * MIB


def _thread_ns(pid: int) -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "cow-watch":
            return int((task / "schedstat").read_text().split()[0])
    raise LookupError(f"pid={pid}: no thread cow-watch")


def _watch(server: Server, board: Board, seconds: float) -> Figures:
    """Let `seconds` pass; what the threads took, and the readings that came."""
    pids = server.workers()
    begin, before = time.monotonic(), sum(map(_thread_ns, pids))
    seen = [board.raw.slot[slot].memory.read_at_ms for slot in range(WORKERS)]
    readings = 0
    while time.monotonic() < begin + seconds:
        time.sleep(0.1)
        now = [board.raw.slot[slot].memory.read_at_ms for slot in range(WORKERS)]
        readings += sum(a != b for a, b in zip(now, seen, strict=True))
        seen = now
    taken = sum(map(_thread_ns, pids)) - before
    elapsed = time.monotonic() - begin
    return {
        "percent_of_a_core": round(taken / 1e7 / elapsed, 3),
        "readings_a_worker_second": round(readings / WORKERS / elapsed, 3),
        "ms_a_reading_at_most": round(taken / 1e6 / readings, 2) if readings else None,
        "resident_mib": round(sum(_core.take_reading(p).rss for p in pids) / 8 / MIB),
        "private_mib": round(
            sum(_core.take_reading(p).private for p in pids) / 8 / MIB
        ),
    }


def _loaded(server: Server, board: Board, seconds: float) -> Figures:
    load = Load(server.port, mix(400), seconds=seconds + 5).start()
    try:
        figures = _watch(server, board, seconds)
    finally:
        report = load.stop()
    figures["requests_a_second"] = round(report.rate)
    figures["not_right"] = report.wrong + report.failed
    return figures


def _grow_to(server: Server, private: int) -> None:
    """Bring each worker's private memory to `private`, one after the other."""
    pids = server.workers()
    for pid in pids:
        others = [each for each in pids if each != pid]
        missing = (private - _core.take_reading(pid).private) // MIB
        if missing < 1:
            continue
        with contextlib.ExitStack() as stopped:
            for other in others:  # only `pid` can answer now
                stopped.callback(os.kill, other, signal.SIGCONT)
                os.kill(other, signal.SIGSTOP)
            status, body = server.get(f"/probe/grow/?mb={missing}")
        if status != 200 or json.loads(body)["pid"] != pid:
            raise RuntimeError(f"pid={pid}: did not grow: {status} {body!r}")


def _start(
    site: Site, limit: int, catalogue_mb: int, setting: str = "cow_max_private"
) -> Server:
    sized = replace(
        site, environ={**site.environ, "SHOP_CATALOGUE_MB": str(catalogue_mb)}
    )
    return common.gunicorn(
        sized,
        WORKERS,
        cow_check_interval="1",
        cow_strikes="1000000",  # over the limit, and never recycled
        **{setting: str(limit)},
    )


def _settle(server: Server) -> Board:
    server.wait_serving(workers=WORKERS)
    report = Load(server.port, mix(400), requests=1200, seconds=30).start().finish()
    if report.wrong or report.failed:
        raise RuntimeError(f"the load failed: {report.errors[:3]}")
    return open_board(server.pid)


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each phase")
    parser.add_argument("--far-mb", type=int, default=250, help="SHOP_CATALOGUE_MB")
    parser.add_argument("--near-mb", type=int, default=145, help="SHOP_CATALOGUE_MB")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    figures: Figures = {"workers": WORKERS, "seconds": seconds}
    with common.example_site(arguments.site, SHOP_NELSON="0") as site:
        with _start(site, 1024 * MIB, arguments.far_mb) as server:
            board = _settle(server)
            common.say("watch_cost: far from the limit")
            figures["far_idle"] = _watch(server, board, seconds)
            figures["far_loaded"] = _loaded(server, board, seconds)
        with _start(site, NEAR_LIMIT, arguments.near_mb) as server:
            board = _settle(server)
            common.say("watch_cost: near the limit")
            _grow_to(server, NEAR_LIMIT - MARGIN)
            time.sleep(2)  # the growth itself calls for a reading
            figures["near_idle"] = _watch(server, board, seconds)
            figures["near_loaded"] = _loaded(server, board, seconds)
            common.say("watch_cost: over the limit")
            _grow_to(server, NEAR_LIMIT + 8 * MIB)
            time.sleep(2)
            figures["over_idle"] = _watch(server, board, seconds)
        with _start(
            site, NEAR_LIMIT, arguments.near_mb, "cow_max_private_hard"
        ) as server:
            board = _settle(server)
            common.say("watch_cost: near a hard limit")
            _grow_to(server, NEAR_LIMIT - HARD_MARGIN)
            time.sleep(2)
            figures["hard_idle"] = _watch(server, board, seconds)
            figures["hard_loaded"] = _loaded(server, board, seconds)
    common.report("watch_cost", figures)


if __name__ == "__main__":
    main()
