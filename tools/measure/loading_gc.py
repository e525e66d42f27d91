"""Collecting while the application loads, or not: the default of `loading-gc`.

In `harness`, one fresh process a run, with SHOP_NELSON=0. `on`: collector as usual,
then collect and freeze. `off`: threshold 0 until the freeze, then collect and freeze
(what loading-gc=off does). `uncollected`: threshold 0, then freeze alone. Times in
seconds; the master's anonymous memory after the freeze and the worker's private and
shared memory after 300 requests in MB.
"""

from __future__ import annotations

from measure import common
from measure.common import Figures, mb, spread

MODES = ("on", "off", "uncollected")


def _figures(runs: list[Figures]) -> Figures:
    return {
        "load_s": spread([run["load"] for run in runs]),
        "warm_s": spread([run["warm"] for run in runs]),
        "freeze_s": spread([run["freeze"] for run in runs]),
        "whole_s": spread([run["load"] + run["warm"] + run["freeze"] for run in runs]),
        "master_anonymous_mb": spread([mb(run["anonymous"]) for run in runs], 1),
        "worker_private_mb": spread([mb(run["end"]["private"]) for run in runs], 2),
        "worker_shared_mb": spread([mb(run["end"]["shared"]) for run in runs], 1),
    }


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each mode")
    parser.add_argument(
        "--requests", type=int, default=300, help="that a worker serves"
    )
    arguments = parser.parse_args()
    gathered: dict[str, list[Figures]] = {mode: [] for mode in MODES}
    with common.example_site(arguments.site, SHOP_NELSON="0") as site:
        for run in range(arguments.runs):
            for mode in MODES:
                common.say(f"loading_gc: run {run + 1}, {mode}")
                gathered[mode].append(
                    common.in_harness(
                        site,
                        task="serving",
                        loading_gc=mode,
                        repeat=8,
                        first=20,
                        requests=arguments.requests,
                    )
                )
    figures = {mode: _figures(runs) for mode, runs in gathered.items()}
    common.report("loading_gc", {"by_mode": figures})


if __name__ == "__main__":
    main()
