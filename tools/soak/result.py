"""What a soak found of one server, and what of it is a fault. Pure.

Goes to JSON and back as it is: docs/ renders its tables from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from soak.slopes import Slope

# What is called a leak: a growth that the whole of the slope's interval is over. What
# the master leaks is shared with the workers that are forked later, and moves its
# resident set and PSS, but not its private memory. The
# master's descriptors may not grow at all. Of memory, 4 MiB an hour are 1 MiB in a run
# of twenty minutes, which its samples can just tell from what comes and goes (the
# control's and our own runs have intervals of 1 to 3 MiB an hour), and 100 MiB a day:
# one that matters to a server that is restarted weekly shows.
MOST = {
    "descriptors": 0.0,
    "master private": 4.0,
    "master PSS": 4.0,
    "master resident": 4.0,
    "fresh worker": 4.0,
}
SHORT = 600.0  # seconds: a run in which the sizes of memory have not settled
QUIET_LEAST = 30.0  # seconds without faults in which a worker has to be recycled


@dataclass(frozen=True)
class HostResult:
    """One server's run.

    Attributes:
        host: name of hosts.HOSTS; `cow`: with us.
        seconds: of load; `quiet_seconds` at its end without faults.
        right, wrong, kept: answers, answers that are not right, requests on a
            connection that had been used before.
        explained: lost requests by what explains them.
        unexplained: the others, a text each; `wrong` answers are among them.
        recycled, killed, unheeded: workers by reason, as the event log has them.
        quiet_recycled: in the quiet end.
        acts: what was done to the server, how often.
        deaths: workers that were killed, by cause; `unexpected`: log lines of those
            whose end nobody meant.
        answered: runaways that had an answer.
        generations: workers that became ready; `boards`, `freezes`: of the master.
        slopes: by the names of MOST; MiB, or descriptors.
        zombies, left: of children for longer than the master is busy; of processes at
            the end.
        tickets: the most that were held; `tickets_left`: at the end, by a worker that
            stays; `not_ready`: workers that boot or leave a minute after the load.
        why: runs, gone, failures.
        odd: log lines that say that something of ours failed.
        exit_code: the master's; None: it did not end.
    """

    host: str
    cow: bool
    seconds: float
    quiet_seconds: float
    right: int
    kept: int
    explained: Mapping[str, int]
    unexplained: tuple[str, ...]
    recycled: Mapping[str, int]
    killed: Mapping[str, int]
    unheeded: int
    quiet_recycled: int
    acts: Mapping[str, int]
    deaths: Mapping[str, int]
    unexpected: tuple[str, ...]
    answered: int
    generations: int
    boards: int
    freezes: int
    slopes: Mapping[str, Slope | None]
    zombies: int
    left: int
    tickets: int
    tickets_left: int
    not_ready: int
    why: Mapping[str, Any]
    odd: tuple[str, ...]
    exit_code: int | None

    @property
    def lost(self) -> int:
        """Requests without their right answer."""
        return sum(self.explained.values()) + len(self.unexplained)

    @property
    def requests(self) -> int:
        return self.right + self.lost

    def faults(self) -> list[str]:
        """What must not be, a line each."""
        found = [f"lost, unexplained: {each}" for each in self.unexplained]
        found += [f"worker's end: {each}" for each in self.unexpected]
        found += [f"log: {each}" for each in self.odd]
        found += list(self.why["failures"])
        for name, slope in self.slopes.items():
            if slope is not None and self._grows(name, slope):
                unit = "" if name == "descriptors" else " MiB"
                found.append(f"{name}: grows by {slope.per_hour:.1f}{unit} an hour")
        for text, count in (
            ("zombies", self.zombies),
            ("processes left", self.left),
            ("tickets kept by workers that stay", self.tickets_left),
            ("workers not ready at the end", self.not_ready),
            ("runaways over the hard limit that had an answer", self.answered),
        ):
            if count:
                found.append(f"{text}: {count}")
        if self.cow and self.quiet_seconds >= QUIET_LEAST and not self.quiet_recycled:
            found.append("no worker was recycled after the faults")
        if self.exit_code is None:
            found.append("the master did not end")
        elif self.exit_code:
            found.append(f"the master's exit code is {self.exit_code}")
        return [f"{self.host}: {each}" for each in found]

    def _grows(self, name: str, slope: Slope) -> bool:
        is_memory = name != "descriptors"
        return slope.is_over(MOST[name]) and not (is_memory and self.seconds < SHORT)


def from_json(given: Mapping[str, Any]) -> HostResult:
    """As asdict has made it."""
    values = dict(given)
    values["slopes"] = {
        name: each and Slope(**each) for name, each in given["slopes"].items()
    }
    for name in ("unexplained", "unexpected", "odd"):
        values[name] = tuple(given[name])
    return HostResult(**values)
