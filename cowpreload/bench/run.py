"""Run scenarios: estimate, journal, one hall for all, a table and plots at the end.

Takes names and a size; gives files in a folder: NAME-3.13.json and PNGs. Ends every
server whatever happens: the first SIGINT or SIGTERM unwinds the stack, later ones are
ignored while it does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cowpreload.bench import plots
from cowpreload.bench.hall import Hall
from cowpreload.bench.interrupt import Interrupted, interruptible
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.machine import busy, missing
from cowpreload.bench.scenario_tables import report
from cowpreload.bench.scenarios import (
    Options,
    allocators,
    caches,
    cpu,
    instagram,
    learn,
    nelson,
    scale,
)
from cowpreload.bench.site import find_site, seeded
from cowpreload.errors import NotFoundError

SCENARIOS: dict[str, Any] = {
    "allocators": allocators,
    "caches": caches,
    "cpu": cpu,
    "instagram": instagram,
    "learn": learn,
    "nelson": nelson,
    "scale": scale,
}


def estimate(names: Sequence[str], size: str) -> int:
    """Seconds that these scenarios take, about: measured on 2 cores. Pure."""
    return sum(SCENARIOS[name].PLANS[size].seconds for name in names)


def result_path(output: Path, name: str) -> Path:
    """Where the figures of a scenario on this interpreter go."""
    return output / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}.json"


def run(names: Sequence[str], size: str, output: Path, options: Options) -> int:
    """Run them one after the other; 0, 1 if something failed, 128 + a signal.

    Raises:
        NotFoundError: a package or the example site is missing.
    """
    if missing():
        raise NotFoundError(
            f"{', '.join(missing())}: not installed; "
            "pip install 'cowpreload[gunicorn,uwsgi,django,plot]'"
        )
    output.mkdir(parents=True, exist_ok=True)
    minutes = max(1, round(estimate(names, size) / 60))
    say(
        f"{', '.join(names)}: about {minutes} min in all on two idle cores; "
        f"results go to {output}"
    )
    journals: list[Journal] = []
    code = 0
    try:
        with (
            interruptible(),
            seeded(find_site()) as site,
            Hall.closing(site) as hall,
        ):
            for name in names:
                scenario = SCENARIOS[name]
                plan = scenario.PLANS[size]
                method = {"text": scenario.METHOD, "plan": vars(plan)}
                journals.append(Journal(result_path(output, name), name, size, method))
                if busy():
                    journals[-1].note(busy())
                scenario.run(hall, journals[-1], plan, options)
                journals[-1].complete()
            code = int(bool(hall.wrong))
    except Interrupted as stopped:
        code = 128 + int(stopped.args[0])
        say("interrupted: every server has ended; what was measured is kept")
    for journal in journals:
        print(f"\n{report(journal.figures)}", flush=True)
    _draw(journals)
    for journal in journals:
        say(f"wrote {journal.path}")
    if code == 1:
        say("some answers were wrong or a mode failed: see above")
    return code


def _draw(journals: Sequence[Journal]) -> None:
    if plots.missing():
        say(f"no plots: {plots.missing()}")
        return
    for journal in journals:
        drawn = plots.draw(journal.path)
        if drawn:
            say(f"drew {drawn}")
