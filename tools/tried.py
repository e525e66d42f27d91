"""Few workers of small sites, as `cowpreload try --json` has measured them. Pure.

Takes its results by site, docs/figures/try-SITE-WORKERS.json; gives Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments import Figures, table

from cowpreload.units import MIB

SITES = {"shop": "the example shop, catalogue of 5 MB", "wagtail": "Wagtail, 20 pages"}


def few_workers(tried: Mapping[str, Sequence[Figures]]) -> str:
    """Total PSS in MiB of each site in each mode, by number of workers."""
    counts = sorted(
        {
            life["workers"]
            for runs in tried.values()
            for run in runs
            for mode in run["modes"]
            for life in mode["lives"]
        }
    )
    rows = []
    for site, runs in tried.items():
        for mode in runs[0]["modes"]:
            totals = _totals(runs, mode["mode"])
            cells = (
                f"{totals[count] / MIB:.0f}" if count in totals else "-"
                for count in counts
            )
            rows.append((SITES.get(site, site), mode["mode"], *cells))
    heads = ("1 worker" if each == 1 else f"{each} workers" for each in counts)
    return f"{_on(tried)}:\n\n" + table(("site", "mode", *heads), rows)


def _totals(runs: Sequence[Figures], mode: str) -> dict[int, int]:
    """By number of workers; each run has measured two numbers, its own counts first."""
    found: dict[int, int] = {}
    for run in sorted(runs, key=lambda each: int(each["workers"])):
        for each in run["modes"]:
            if each["mode"] == mode:
                for life in each["lives"]:
                    found.setdefault(life["workers"], life["total_pss"])
    return found


def _on(tried: Mapping[str, Sequence[Figures]]) -> str:
    runs = [run for runs in tried.values() for run in runs]
    versions = sorted({run["versions"]["python"] for run in runs})
    requests = sorted({round(run["requests"] / run["workers"]) for run in runs})
    return (
        f"CPython {', '.join(versions)}, "
        f"{' or '.join(map(str, requests))} requests for each worker; MiB"
    )
