"""How many warm-up requests a path are worth it: the default of `warmup-repeat`.

In `harness`, one fresh process a run (the specializing interpreter keeps state), with
SHOP_NELSON=0: load, warm four paths N times each, freeze, fork; the worker serves 300
mixed requests. Gives the worker's private memory in MB when fresh, after 20 requests
and at the end, and the time of the warm up in ms; medians of the runs. Twice: with the
default catalogue, and with a small one (`small`), where the pages of the offers that
are read do not hide those of the code.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from measure import common
from measure.common import Figures, Site, mb, spread

REPEATS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 32)
FIRST = 20
REQUESTS = 300


def _figures(runs: list[Figures]) -> Figures:
    return {
        "private_mb_fresh": mb(median(run["fresh"]["private"] for run in runs)),
        f"private_mb_after_{FIRST}": spread(
            [mb(run["first"]["private"]) for run in runs], 2
        ),
        f"private_mb_after_{REQUESTS}": spread(
            [mb(run["end"]["private"]) for run in runs], 2
        ),
        f"ms_of_first_{FIRST}": round(
            1000 * median(run["first"]["seconds"] for run in runs), 1
        ),
        "ms_of_warmup": round(1000 * median(run["warm"] for run in runs), 1),
    }


def _measure(name: str, site: Site, runs: int) -> Figures:
    gathered: dict[int, list[Figures]] = {repeat: [] for repeat in REPEATS}
    for run in range(runs):
        for repeat in REPEATS:
            common.say(f"warmup_repeat: {name}, run {run + 1}, repeat {repeat}")
            gathered[repeat].append(
                common.in_harness(
                    site,
                    task="serving",
                    loading_gc="on",
                    repeat=repeat,
                    first=FIRST,
                    requests=REQUESTS,
                )
            )
    return {str(repeat): _figures(each) for repeat, each in gathered.items()}


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each number")
    arguments = parser.parse_args()
    figures: Figures = {}
    with common.example_site(arguments.site, SHOP_NELSON="0") as site:
        small = {**site.environ, "SHOP_CATALOGUE_MB": "5"}
        for name, each in (
            ("small", replace(site, environ=small)),
            ("default", site),
        ):
            figures[name] = _measure(name, each, arguments.runs)
    common.report("warmup_repeat", {"by_repeat": figures})


if __name__ == "__main__":
    main()
