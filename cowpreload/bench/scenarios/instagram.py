"""The attempts of the Instagram article as modes, each on both hosts.

"Dismissing Python Garbage Collection at Instagram", January 2017. Its theory was that
reading copies (reference counts), its finding that the collector does, and at the end
finalization. Measured of each mode: the memory of the workers right after the fork,
after a little traffic, after much; their page faults; and what happens when all leave
at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from cowpreload.bench.hall import Hall
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.mode import HOSTS, IMMORTAL_OFF, WARM, Mode, alone, ours, plain
from cowpreload.bench.observe import (
    Exit,
    Memory,
    leave_all,
    look,
    wait_forked,
    wait_quiet,
)
from cowpreload.bench.scenarios import Options
from cowpreload.bench.site import browsing
from cowpreload.bench.stats import Figures, spread

METHOD = (
    "The example shop with 4 workers. Memory is smaps_rollup's of each worker: fresh: "
    "after the fork and before any request; warm: after the first requests; end: "
    "after all. Faults are minflt of /proc/PID/stat since the fork. Exit: SIGTERM to "
    "the master, all workers leave at once; pages copied are the faults from the "
    "signal on, peak is the highest total PSS of all processes, looked at every 20 "
    "ms. Figures are medians over all workers of all repetitions, with quartiles and "
    "extremes. Every answer is checked."
)


@dataclass(frozen=True)
class Plan:
    """The numbers of one size.

    Attributes:
        repeats: of every mode.
        warm: requests before the second look, all workers together.
        end: requests between that and the third.
        environ: of the site.
        seconds: what the whole takes on a machine of 2 cores, about.
        only: keys of the modes that are measured; none: all.
    """

    repeats: int
    warm: int
    end: int
    environ: tuple[tuple[str, str], ...]
    seconds: int
    workers: int = 4
    only: tuple[str, ...] = ()


PARTS = ("private", "shared", "pss", "faults")  # of a worker
SMALL = (("SHOP_CATALOGUE_MB", "40"), ("SHOP_NELSON", "0"))
PLANS = {
    "full": Plan(3, 100, 1400, (), 560),
    "quick": Plan(1, 60, 240, SMALL, 65),
    "tiny": Plan(
        *(1, 8, 12, (("SHOP_CATALOGUE_MB", "5"), ("SHOP_NELSON", "0")), 12, 2),
        only=("gunicorn plain", "gunicorn all", "uwsgi plain", "uwsgi all"),
    ),
}


def modes(host: str) -> tuple[Mode, ...]:
    """The attempts in the article's order, then what came after it."""
    frozen = "our worker with "
    return (
        alone(host),
        plain(host),
        Mode(
            "gc.disable()",
            host,
            "attempt 2: in the bootstrap; a library calls gc.enable()",
            attempt="disable",
        ),
        Mode(
            "set_threshold(0)",
            host,
            "attempt 2, mended: no library undoes it",
            attempt="threshold",
        ),
        Mode(
            "threshold+_exit",
            host,
            "attempt 4: and os._exit after the exit handlers",
            attempt="threshold-exit",
        ),
        Mode(
            "freeze",
            host,
            frozen + "collect and gc.freeze() alone",
            cow=True,
            settings=(IMMORTAL_OFF,),
        ),
        Mode(
            "warm-up+freeze",
            host,
            frozen + "warm-up and freeze, not immortal",
            cow=True,
            settings=(IMMORTAL_OFF, WARM),
        ),
        ours(host),
    )


MODES = tuple(chain.from_iterable(modes(host) for host in HOSTS))


def _memory(memory: Memory) -> Figures:
    return {
        **{name: [getattr(each, name) for each in memory.workers] for name in PARTS},
        "total_pss": memory.total_pss,
    }


def _measure(hall: Hall, mode: Mode, plan: Plan) -> Figures:
    """One life of one server."""
    with hall.start(mode, plan.workers, dict(plan.environ)) as server:
        wait_forked(server, plan.workers)
        wait_quiet(server)
        run = {"fresh": _memory(look(server))}
        server.wait_serving(workers=plan.workers, seconds=300)
        paths = browsing(server, plan.warm + plan.end)
        hall.load(server, paths[: plan.warm])
        run["warm"] = _memory(look(server))
        hall.load(server, paths[plan.warm :])
        run["end"] = _memory(look(server))
        run["collector"] = json.loads(server.get("/bench/collector")[1])
        run["exit"] = asdict(_leave(mode, plan, leave_all(server)))
    return run


def _leave(mode: Mode, plan: Plan, gone: Exit) -> Exit:
    say(
        f"{mode.shown}: {plan.workers} workers left in {gone.seconds:.2f} s, "
        f"{gone.faults} faults"
    )
    return gone


def summary(runs: Sequence[Figures]) -> Figures:
    """Medians and spreads over all workers of all runs of one mode. Pure."""
    figures: Figures = {}
    for phase in ("fresh", "warm", "end"):
        figures[phase] = {
            name: spread([each for run in runs for each in run[phase][name]], 0)
            for name in PARTS
        }
        totals = [run[phase]["total_pss"] for run in runs]
        figures[phase]["total_pss"] = spread(totals, 0)
    exits = [run["exit"] for run in runs]
    workers_each = len(runs[0]["end"]["private"])
    figures["exit"] = {
        "seconds": spread([each["seconds"] for each in exits]),
        "pages": spread([each["faults"] / workers_each for each in exits], 0),
        "before": spread([each["before"] for each in exits], 0),
        "peak": spread([each["peak"] for each in exits], 0),
    }
    figures["collector"] = runs[-1]["collector"]
    return figures


def run(hall: Hall, journal: Journal, plan: Plan, options: Options) -> None:
    """Every mode, `repeats` times."""
    chosen = [mode for mode in MODES if not plan.only or mode.key in plan.only]
    runs: dict[str, list[Figures]] = {mode.key: [] for mode in chosen}
    for repeat in range(plan.repeats):
        for number, mode in enumerate(chosen, start=1):
            say(
                f"instagram: {mode.shown} ({number} of {len(chosen)}, "
                f"repetition {repeat + 1} of {plan.repeats})"
            )
            try:
                runs[mode.key].append(_measure(hall, mode, plan))
            except (RuntimeError, TimeoutError, OSError) as error:
                hall.wrong += 1
                journal.note(f"{mode.shown}: failed: {error}")
                continue
            value = {
                "name": mode.name,
                "host": mode.host,
                "about": mode.about,
                "summary": summary(runs[mode.key]),
                "runs": runs[mode.key],
            }
            journal.put("modes", mode.key, value=value)
