"""What immortality costs and brings in time: requests, the walk, the master's start.

Requests a second of two gunicorn servers of the example site side by side, with and
without immortality, served in turn in both orders: median ratio of the pairs. The walk
in nanoseconds an object and the start of the master (load, warm up, freeze) in seconds,
from `harness` in fresh processes, in turn.
"""

from __future__ import annotations

from statistics import median

from cowpreload._core import lib
from cowpreload.bench.client import Load
from cowpreload.bench.measure import common
from cowpreload.bench.measure.common import Figures, Site, mix, spread
from cowpreload.bench.server import Server

WORKERS = 2
STAGES = ("load", "warm", "freeze")


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


def _start(site: Site, runs: int) -> Figures:
    gathered: dict[str, list[Figures]] = {"off": [], "on": []}
    fill = {"off": None, "on": lib.COW_FILL_DEFAULT}
    for number in range(runs):
        for mode in sorted(gathered, reverse=bool(number % 2)):
            common.say(f"immortal_speed: start {number + 1}, {mode}")
            gathered[mode].append(
                common.in_harness(
                    site,
                    task="serving",
                    loading_gc="on",
                    repeat=2,
                    fill=fill[mode],
                    first=0,
                    requests=1,
                )
            )
    walks = [
        1e9 * run["walk_seconds"] / run["walk"]["objects"] for run in gathered["on"]
    ]
    starts = {
        mode: [sum(run[stage] for stage in STAGES) for run in runs]
        for mode, runs in gathered.items()
    }
    ratios = [on / off for on, off in zip(starts["on"], starts["off"], strict=True)]
    return {
        "walk_ns_an_object": spread(walks, 1),
        "objects": gathered["on"][0]["walk"]["objects"],
        "start_s": {mode: spread(each) for mode, each in starts.items()},
        "start_ratio": spread(ratios),
    }


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="of requests")
    parser.add_argument("--requests", type=int, default=600, help="a server and pair")
    parser.add_argument("--runs", type=int, default=5, help="of the master's start")
    arguments = parser.parse_args()
    with common.example_site(arguments.site) as site:
        figures = {
            "start": _start(site, arguments.runs),
            "requests": _requests(site, arguments.pairs, arguments.requests),
        }
    common.report("immortal_speed", figures)


if __name__ == "__main__":
    main()
