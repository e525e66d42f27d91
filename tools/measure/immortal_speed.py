"""What immortality costs and brings in time: requests, the walk, the master's start.

Requests a second of two gunicorn servers of the example site side by side, with and
without immortality, served in turn in both orders: median ratio of the pairs. The start
of such a server's master, from its exec to the line that says that the heap is frozen,
in pairs. The walk in nanoseconds an object, from `harness` in fresh processes.
"""

from __future__ import annotations

import time
from statistics import median

from cowpreload._core import lib
from cowpreload.bench.client import Load
from cowpreload.bench.server import Server
from measure import common
from measure.common import Figures, Site, mix, spread

WORKERS = 2


def _rate(server: Server, requests: int) -> float:
    load = Load(server.port, mix(400), requests=requests, seconds=120)
    report = load.start().finish()
    if report.wrong or report.failed:
        raise RuntimeError(f"wrong answers: {report.errors}")
    return report.rate


def _requests(site: Site, pairs: int, requests: int) -> Figures:
    with (
        common.gunicorn(site, WORKERS, cow_immortal="off") as plain,
        common.gunicorn(site, WORKERS, cow_immortal="auto") as immortal,
    ):
        for server in (plain, immortal):
            server.wait_serving(workers=WORKERS)
            _rate(server, requests)
        ratios, rates = [], []
        for number in range(pairs):
            order = (plain, immortal) if number % 2 else (immortal, plain)
            rate = {id(each): _rate(each, requests) for each in order}
            ratios.append(rate[id(immortal)] / rate[id(plain)])
            rates.append(rate[id(plain)])
            common.say(f"immortal_speed: pair {number + 1}, {ratios[-1]:.3f}")
    return {"ratio": spread(ratios), "plain_rate": round(median(rates))}


def _start(site: Site, immortal: str) -> float:
    """Seconds until the heap is frozen and the first worker about to be forked."""
    begin = time.perf_counter()
    with common.gunicorn(site, 1, cow_immortal=immortal) as server:
        while "cow: preload " not in server.log:
            time.sleep(0.002)
        return time.perf_counter() - begin


def _starts(site: Site, pairs: int) -> Figures:
    seconds: dict[str, list[float]] = {"off": [], "auto": []}
    for number in range(pairs):
        for mode in sorted(seconds, reverse=bool(number % 2)):
            seconds[mode].append(_start(site, mode))
        common.say(
            f"immortal_speed: start {number + 1}, "
            f"{seconds['auto'][-1] / seconds['off'][-1]:.3f}"
        )
    ratios = [on / off for on, off in zip(seconds["auto"], seconds["off"], strict=True)]
    return {
        "seconds": {mode: spread(each) for mode, each in seconds.items()},
        "ratio": spread(ratios),
    }


def _walk(site: Site, runs: int) -> Figures:
    found = [
        common.in_harness(
            site,
            task="serving",
            loading_gc="on",
            repeat=2,
            fill=lib.COW_FILL_DEFAULT,
            first=0,
            requests=1,
        )
        for _ in range(runs)
    ]
    each = [1e9 * run["walk_seconds"] / run["walk"]["objects"] for run in found]
    return {"ns_an_object": spread(each, 1), "objects": found[0]["walk"]["objects"]}


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="of requests")
    parser.add_argument("--requests", type=int, default=600, help="a server and pair")
    parser.add_argument("--starts", type=int, default=9, help="pairs of starts")
    parser.add_argument("--runs", type=int, default=5, help="of the walk")
    arguments = parser.parse_args()
    with common.example_site(arguments.site) as site:
        figures = {
            "walk": _walk(site, arguments.runs),
            "start": _starts(site, arguments.starts),
            "requests": _requests(site, arguments.pairs, arguments.requests),
        }
    common.report("immortal_speed", figures)


if __name__ == "__main__":
    main()
