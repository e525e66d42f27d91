"""What a worker's end costs: `cow-exit` fast against normal.

In `harness`, on the example site at its default size: a forked worker serves requests
and waits; then it is let go and leaves by `leave()` or by the whole finalization of
the interpreter (after gc.unfreeze, as the hosts do). Time in ms from that moment to
wait4's return. Pages: minor faults (ru_minflt) from before to after, of 4 KiB, nearly
all of them copies of shared pages. For four that leave at once: private memory of all,
in MB, before and at its peak, by smaps_rollup of each in turn.
"""

from __future__ import annotations

from measure import common
from measure.common import Figures, mb, spread


def _figures(runs: list[Figures]) -> Figures:
    pages = [run["faults"] / run["workers"] for run in runs]
    figures = {
        "ms": spread([run["seconds"] * 1000 for run in runs], 1),
        "pages_a_worker": spread(pages, 0),
        "copied_mb_a_worker": mb(spread(pages)["median"] * 4096),
    }
    if runs[0]["workers"] > 1:
        figures |= {
            "private_mb_before": spread([mb(run["private"]) for run in runs], 1),
            "private_mb_peak": spread([mb(run["most_private"]) for run in runs], 1),
            "samples": spread([run["samples"] for run in runs], 0),
        }
    return figures


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--singles", type=int, default=9, help="workers, each mode")
    parser.add_argument("--groups", type=int, default=3, help="of four, each mode")
    parser.add_argument("--requests", type=int, default=60, help="served by each")
    arguments = parser.parse_args()
    with common.example_site(arguments.site) as site:
        common.say("exit_cost: one process with all workers")
        given = common.in_harness(
            site,
            task="leaving",
            loading_gc="on",
            repeat=8,
            requests=arguments.requests,
            groups=[[1, arguments.singles], [4, arguments.groups]],
        )
    figures: Figures = {"heap_mb": mb(given["anonymous"])}
    for workers, name in ((1, "alone"), (4, "four_at_once")):
        for mode in ("fast", "normal"):
            runs = [
                run
                for run in given["runs"]
                if run["mode"] == mode and run["workers"] == workers
            ]
            figures[f"{name}_{mode}"] = _figures(runs)
    common.report("exit_cost", figures)


if __name__ == "__main__":
    main()
