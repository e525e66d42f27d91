"""What each step before the fork saves: from plain preload to an immortal heap.

In `harness`, one fresh process a step: load, do what the step does, fork; the worker
serves 2,000 requests that read the whole catalogue. Gives its private, shared and
proportional memory at the end in MB, medians of the runs, the seconds of each stage,
and what it filled, laid and walked over.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from cowpreload import _core
from cowpreload._core import lib
from measure import common
from measure.common import Figures, Site, mb

REQUESTS = 2000
_HASHES = lib.COW_FILL_HASHES
_VERSIONS = lib.COW_FILL_VERSIONS


@dataclass(frozen=True)
class Step:
    """One row; each does what the one before does, and one thing more."""

    name: str
    freeze: str = "on"
    repeat: int = 2
    fill: int | None = None
    seal: bool = False
    hot: bool = False


STEPS = (
    Step("preload", freeze="off", repeat=0),
    Step("+ collect and freeze", repeat=0),
    Step("+ warm-up"),
    Step("mortal, sealed", seal=True),
    Step("+ immortal", fill=0),
    Step("+ hashes", fill=_HASHES),
    Step("+ version tags", fill=_HASHES | _VERSIONS),
    Step("+ UTF-8", fill=_HASHES | _VERSIONS | lib.COW_FILL_UTF8),
    Step("immortal without warm-up", repeat=0, fill=_HASHES | _VERSIONS),
    Step("immortal, hashes, sealed", fill=_HASHES, seal=True),
    Step("as servers do: and hot code laid", fill=_HASHES, seal=True, hot=True),
)


def _run(site: Site, step: Step, requests: int) -> Figures:
    return common.in_harness(
        site,
        task="serving",
        loading_gc="on",
        freeze=step.freeze,
        repeat=step.repeat,
        fill=step.fill,
        seal=step.seal,
        hot=step.hot,
        whole=True,
        first=0,
        requests=requests,
    )


def _figures(runs: list[Figures]) -> Figures:
    given: dict[str, Any] = {
        f"{name}_mb": mb(median(run["end"][name] for run in runs))
        for name in ("private", "shared", "pss")
    }
    for name in ("load", "freeze", "seal"):
        given[f"{name}_s"] = round(median(run[name] for run in runs), 4)
    given |= {name: runs[0][name] for name in ("sealed", "hot")}
    given["master_mb"] = mb(median(run["anonymous"] for run in runs))
    if "walk" in runs[0]:
        given["walk"] = runs[0]["walk"]
    return given


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each step")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--only", default="", help="steps with this text in their name")
    arguments = parser.parse_args()
    steps = [
        each
        for each in STEPS
        if arguments.only in each.name
        and (each.fill is None or not _core.immortal_why_not())
    ]
    gathered: dict[str, list[Figures]] = {each.name: [] for each in steps}
    with common.example_site(arguments.site) as site:
        for run in range(arguments.runs):
            for step in steps:
                common.say(f"ablation: run {run + 1}, {step.name}")
                gathered[step.name].append(_run(site, step, arguments.requests))
    figures = {name: _figures(runs) for name, runs in gathered.items()}
    common.report("ablation", {"requests": arguments.requests, "steps": figures})


if __name__ == "__main__":
    main()
