"""What happens to a server when: a plan, made of the seed alone. Pure.

Takes the seed, the host and the seconds that the faults last; gives acts in the order
of time. Each kind has a stream of its own, so that another kind moves no other act. The
end of a run is QUIET: no fault in it, and recycling has to go on at full pace.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

KILL, RUNAWAY, STOP, STALL = "kill", "runaway", "stop", "stall"
HUP, CHANGE, MISTAKE, CHAIN = "hup", "changed limit", "mistaken limit", "chain"
IMPOSSIBLE = "impossible budget"
MORE, FEWER = "one more", "one fewer"

# Seconds between two of a kind, on the average. A stall is a stop that outlasts
# gunicorn's timeout. uWSGI's reload executes itself anew: its counters begin again, and
# what it warmed is lost, so that it comes seldom.
GUNICORN: Mapping[str, float] = {
    KILL: 8, RUNAWAY: 25, STOP: 30, STALL: 200, HUP: 90, CHANGE: 150, MISTAKE: 210,
    IMPOSSIBLE: 170, MORE: 60, FEWER: 60,
}  # fmt: skip
UWSGI: Mapping[str, float] = {
    KILL: 8, RUNAWAY: 25, STOP: 30, HUP: 240, CHAIN: 100, MORE: 60, FEWER: 60,
}  # fmt: skip
QUIET = 0.1  # of a run, at its end, and not more than
QUIET_SECONDS = 60.0
OURS = (
    RUNAWAY,
    CHANGE,
    MISTAKE,
    IMPOSSIBLE,
)  # without us there is no limit to pass or to change


@dataclass(frozen=True)
class Act:
    """One thing that is done to a server.

    Attributes:
        at: seconds after the start of the load.
        pick: 0 to 1: which of the workers.
        amount: 0 to 1: how much of it, how long.
    """

    at: float
    kind: str
    pick: float
    amount: float


def faults_end(seconds: float) -> float:
    """When the quiet end of a run of so many seconds begins."""
    return seconds - min(seconds * QUIET, QUIET_SECONDS)


def plan(
    seed: int, host: str, seconds: float, *, pace: float = 1.0, control: bool = False
) -> tuple[Act, ...]:
    """The acts of a run.

    Args:
        pace: how many times as often as in a run of twenty minutes.
        control: leave out what needs us.
    """
    acts = []
    for kind, every in (UWSGI if host.startswith("uwsgi") else GUNICORN).items():
        if control and kind in OURS:
            continue
        chosen = random.Random(f"{seed} {host} {kind}")
        at = every / pace * chosen.uniform(0.2, 1.0)
        while at < faults_end(seconds):
            acts.append(Act(at, kind, chosen.random(), chosen.random()))
            at += every / pace * chosen.uniform(0.5, 1.5)
    return tuple(sorted(acts, key=lambda each: (each.at, each.kind)))


# (what, of how many requests, from, to): leaks are what recycles workers.
REQUESTS = (
    ("/page/{}/", 60, 0, 399),
    ("/kind/{}/", 14, 0, 9),
    ("/leak?n={}", 14, 256, 2048),
    ("/slow?n={}", 8, 50, 2500),
    ("/peak?n={}", 2, 4, 24),
    ("/", 2, 0, 0),
)


def paths(seed: int, host: str, count: int = 4999) -> list[str]:
    """What the clients request, in turn."""
    chosen = random.Random(f"{seed} {host} paths")
    kinds = chosen.choices(REQUESTS, [each[1] for each in REQUESTS], k=count)
    return [form.format(chosen.randint(low, high)) for form, _, low, high in kinds]


def expected(path: str) -> int:
    """The sum that the answer to a path has to have."""
    name, number = path.strip("/"), 0
    if "?n=" in path:
        return int(path.partition("?n=")[2])
    if "/" in name:
        name, given = name.split("/")
        number = int(given)
    if name == "kind":
        return 6000 + number
    return sum(range(number * 100, number * 100 + 100))
