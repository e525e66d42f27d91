"""Write the generated parts of docs/ and README.md; with --check, fail if they differ.

A generated part stands between `<!-- NAME -->` and `<!-- /NAME -->`. The pictures in
docs/figures/ are drawn from the results of `cowpreload bench` beside them, and carry
their hash: --check needs no matplotlib.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import api
import claims
import claims_memory
import experiments
from measure_tables import (
    applications,
    celery_pools,
    process_pools,
    quick_start,
    shares,
    steps,
)
from soak import table as soak_table
from tried import few_workers

from cowpreload import events, metrics
from cowpreload.bench import plots
from cowpreload.bench.demo_table import demo_table
from cowpreload.cli.settings import table

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
Part = tuple[str, Callable[[], str]]


def demo(version: str) -> str:
    """The demo's table out of its JSON, for one interpreter."""
    figures = json.loads((FIGURES / f"demo-{version}.json").read_text())
    return demo_table(figures).markdown()


SCENARIOS = ("allocators", "caches", "cpu", "instagram", "learn", "nelson", "scale")
VERSIONS = ("3.13", "3.11")


def path(scenario: str, version: str) -> Path | None:
    """The file of a result, if there is one."""
    found = FIGURES / f"{scenario}-{version}.json"
    return found if found.exists() else None


def result(scenario: str, version: str) -> dict[str, Any]:
    """What `cowpreload bench` wrote."""
    figures: dict[str, Any] = json.loads(
        (FIGURES / f"{scenario}-{version}.json").read_text()
    )
    return figures


def results() -> dict[str, dict[str, Any]]:
    """Every scenario on every interpreter, as far as it was measured there."""
    return {
        f"CPython {version}": {
            name: result(name, version) for name in SCENARIOS if path(name, version)
        }
        for version in VERSIONS
    }


def _with(scenario: str) -> dict[str, dict[str, Any]]:
    """The interpreters on which it was measured."""
    return {name: found for name, found in results().items() if scenario in found}


def _scenario_parts() -> dict[str, Part]:
    return {
        f"{name}-{version}": (
            "docs/experiments.md",
            partial(lambda n, v: experiments.tables(result(n, v)), name, version),
        )
        for version in VERSIONS
        for name in SCENARIOS
        if path(name, version)
    }


def measured(name: str) -> list[dict[str, Any]]:
    """What a program of tools/measure/ gave, oldest interpreter first, then by name."""
    paths = sorted(FIGURES.glob(f"{name}-*.json"))
    found = (json.loads(path.read_text()) for path in paths)
    return sorted(found, key=lambda each: version_key(each["python"]))


def soak(name: str) -> str:
    """What `make soak` gave."""
    return soak_table.from_run(json.loads((FIGURES / f"{name}.json").read_text()))


def tried_sites() -> dict[str, list[dict[str, Any]]]:
    """What `cowpreload try --json` gave of each site."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in sorted(FIGURES.glob("try-*-*.json")):
        site = each.stem.removeprefix("try-").rpartition("-")[0]
        found.setdefault(site, []).append(json.loads(each.read_text()))
    return found


def version_key(version: str) -> tuple[int, ...]:
    """3.9 before 3.10; what follows the number (`rc1`) does not count."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


PARTS: dict[str, Part] = {
    "settings": ("docs/settings.md", table),
    "events-common": ("docs/metrics.md", events.common_table),
    "metrics": ("docs/metrics.md", metrics.table),
    "events": ("docs/metrics.md", events.table),
    "api": ("docs/api.md", api.api),
    "quick-start": ("README.md", lambda: quick_start(measured("quick_start"))),
    "bench": (
        "README.md",
        lambda: experiments.readme(results()[f"CPython {VERSIONS[0]}"]),
    ),
    "demo-3.13": ("docs/measurements.md", lambda: demo("3.13")),
    "demo-3.11": ("docs/measurements.md", lambda: demo("3.11")),
    "applications": (
        "docs/measurements.md",
        lambda: applications(measured("applications")),
    ),
    "ablation": ("docs/immortality.md", lambda: steps(measured("ablation"))),
    "servers": ("docs/immortality.md", lambda: shares(measured("servers"))),
    "soak": ("docs/measurements.md", lambda: soak("soak")),
    "soak-control": ("docs/measurements.md", lambda: soak("soak-control")),
    "celery": ("docs/celery.md", lambda: celery_pools(measured("celery_pool"))),
    "process-pools": (
        "docs/celery.md",
        lambda: process_pools(measured("process_pools")),
    ),
    "claims": ("docs/experiments.md", lambda: claims.claims(results())),
    "claims-allocators": (
        "docs/experiments.md",
        lambda: claims.claims(_with("allocators"), claims_memory.ALLOCATORS),
    ),
    "claims-caches": (
        "docs/experiments.md",
        lambda: claims.claims(_with("caches"), claims_memory.CACHES),
    ),
    **{
        f"paper-{version}": (
            "docs/experiments.md",
            partial(lambda v: claims.paper(result("nelson", v)), version),
        )
        for version in VERSIONS
    },
    **_scenario_parts(),
    "few-workers": (
        "docs/when-it-will-not-help.md",
        lambda: few_workers(tried_sites()),
    ),
    "limits": (
        "docs/when-it-will-not-help.md",
        lambda: experiments.limits(results()),
    ),
}


def old_pictures() -> list[Path]:
    """The results whose picture was drawn from other figures, or is missing."""
    paths = [path(name, version) for name in plots.DRAW for version in VERSIONS]
    return [
        each
        for each in paths
        if each
        and plots.drawn_from(each.with_suffix(".png")) != plots.figures_hash(each)
    ]


def render(text: str, name: str, part: str) -> str:
    """`text` with the generated part `name` renewed."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"docs: no part named {name}")
    return pattern.sub(lambda match: f"{match[1]}{part}\n{match[2]}", text)


def main() -> int:
    """Write or check every part."""
    code = 0
    for name, (file, make) in PARTS.items():
        document = ROOT / file
        text = document.read_text()
        renewed = render(text, name, make())
        if renewed == text:
            continue
        if "--check" in sys.argv:
            print(f"docs: {file}: part {name} is old; run: make docs", file=sys.stderr)
            code = 1
        else:
            document.write_text(renewed)
    for figures in old_pictures():
        if "--check" in sys.argv:
            print(f"docs: {figures.stem}.png is old; run: make docs", file=sys.stderr)
            code = 1
        else:
            plots.draw(figures)
    return code


if __name__ == "__main__":
    sys.exit(main())
