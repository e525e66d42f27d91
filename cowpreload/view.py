"""A view of a running server: what `status`, `top`, `record` and exporters show.

Frozen records, made by servers.py from a board and /proc. Sizes in bytes, times in
seconds. Pure: must not import a stage, read a clock or /proc, or print. A figure that
could not be read is 0, and what says so is named beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cowpreload.warmed import Warming

# Why a worker was told to go, as logs and settings say it, and in this order wherever
# all are shown. The last three are no limit of the worker's: little memory is left to
# all, processes wait for memory, the master has a warmer heap to fork.
REASONS = (
    "max-private",
    "max-growth",
    "budget",
    "max-private-hard",
    "unheeded",
    "room",
    "pressure",
    "renewed",
)
NO_LIMITS = REASONS[-3:]


@dataclass(frozen=True)
class End:
    """A decision about a worker that was told to go, as its log line has it.

    Attributes:
        action: `recycled`, `killed`, or `unheeded` (told again).
        reason: one of REASONS.
        generation: of the slot, that it was about.
        private: what the worker had then.
        limit: what it had passed, as a private size, or the budget of the server; 0
            where the reason is none. Of `room`, the bytes that were left; of
            `pressure`, per mille of the time.
        age: how old the worker was.
        total: of the server, where the limit is its budget; 0: it is not.
    """

    action: str
    reason: str
    generation: int
    private: int
    limit: int
    age: float
    total: int = 0


@dataclass(frozen=True)
class SlotView:
    """A slot that holds a worker.

    Attributes:
        slot: its number, from 1.
        state: `booting`, `ready`, `leaving`; `gone`: its process is, and the master has
            not noticed yet.
        generation: how often the slot was filled.
        pid: as this process sees it; 0: not at all, or not forked yet.
        requests: of this generation.
        private, evictable, shared, pss, rss: as Reading has them.
        age: since it was forked.
        read_age: how old these figures are; 0: read just now, or never yet.
        strikes: readings in a row over a soft limit, of the `wanted` that recycle it.
        grown: private memory over the reading taken when it was ready.
        ready_age: since it was ready; 0: it is not yet.
        served: requests of all generations of the slot.
        ready_private: private memory when it was ready.
        max_private, max_growth, max_private_hard: its limits; 0: none.
        last: the last decision about this slot, of this generation or one before.
    """

    slot: int
    state: str
    generation: int
    pid: int
    requests: int
    private: int
    evictable: int
    shared: int
    pss: int
    rss: int
    age: float
    read_age: float
    strikes: int
    grown: int = 0
    ready_age: float = 0.0
    served: int = 0
    wanted: int = 0
    ready_private: int = 0
    max_private: int = 0
    max_growth: int = 0
    max_private_hard: int = 0
    last: End | None = None

    @property
    def soft(self) -> int:
        """The private size at which it is recycled after its requests; 0: none."""
        growth = self.ready_private + self.max_growth if self.max_growth else 0
        return min((each for each in (self.max_private, growth) if each), default=0)

    @property
    def over(self) -> str:
        """The limit that its private memory is over now; "" if none, or not ready."""
        if not self.ready_age:
            return ""
        if self.max_private_hard and self.private > self.max_private_hard:
            return "max-private-hard"
        if self.max_private and self.private > self.max_private:
            return "max-private"
        if self.max_growth and self.grown > self.max_growth:
            return "max-growth"
        return ""

    @property
    def leaving_for(self) -> str:
        """The limit because of which it is leaving; "" if it is not, or for another
        reason."""
        told = self.last is not None and self.last.generation == self.generation
        if self.state != "leaving" or not told or self.last is None:
            return ""
        return "" if self.last.reason in NO_LIMITS else self.last.reason

    @property
    def is_passing(self) -> bool:
        """Whether a limit is being passed: it is over one, or leaves because of one."""
        return bool(self.over or self.leaving_for)


@dataclass(frozen=True)
class Frozen:
    """The last freeze of the master.

    Attributes:
        generation: how many there were; the start's is 1.
        inherited: bytes of the master then, which its workers share; 0: not read.
        objects: containers in the permanent generation.
        immortal: objects that counting references writes no more.
        seconds: collect, walk and freeze, of all interpreters.
        age: since it was over.
    """

    generation: int
    inherited: int
    objects: int
    immortal: int
    seconds: float
    age: float


@dataclass(frozen=True)
class MasterView:
    """The process that loads and forks.

    Attributes:
        pid: as this process sees it; 0: not at all.
        host: the server's name and version, as `gunicorn 27.0.1`.
        application: as the host was given it.
        age: since its board was made, between its start and the first fork; a uWSGI
            reload begins anew.
        private, evictable, shared, pss, rss: as Reading has them; all 0: unreadable.
        frozen: None before the first freeze, and where there is none.
        warmings: the start's, then the last ones after it, oldest first.
    """

    pid: int
    host: str
    application: str
    age: float
    private: int = 0
    evictable: int = 0
    shared: int = 0
    pss: int = 0
    rss: int = 0
    frozen: Frozen | None = None
    warmings: tuple[Warming, ...] = ()


@dataclass(frozen=True)
class Counts:
    """What has happened since the server began; counters, they only rise.

    Attributes:
        recycled: workers told to leave, by each of REASONS.
        killed: workers killed, likewise; one that was told before is in both.
        unheeded: workers told a second time.
        requests: of all generations of all slots.
        readings, readings_failed: of workers' memory, by themselves.
    """

    recycled: tuple[tuple[str, int], ...] = ()
    killed: tuple[tuple[str, int], ...] = ()
    unheeded: int = 0
    requests: int = 0
    readings: int = 0
    readings_failed: int = 0


@dataclass(frozen=True)
class Totals:
    """The server as a whole.

    Attributes:
        workers: slots with a worker that serves or will.
        pss: of the master and all workers: what the server takes of the machine.
        private: of all workers and the master: what their end gives back one by one.
        is_whole: whether every process could be read; else both are too small.
        memory: what the server may take at most: the tightest limit of its control
            groups, or the machine's memory; 0: not known.
        memory_from: the file that says so, or `machine`.
        memory_used: of it, by whoever shares it; as capacity.py has it.
        budget: what master and workers may take together; 0: there is none.
        counted: what the server itself holds against it; as `pss`, of its last
            readings, with what is swapped out.
        share: private memory that each worker may have by it.
    """

    workers: int
    pss: int
    private: int
    is_whole: bool
    memory: int = 0
    memory_from: str = "machine"
    memory_used: int = 0
    budget: int = 0
    counted: int = 0
    share: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the server takes more than its budget."""
        return 0 < self.budget < self.counted


@dataclass(frozen=True)
class ServerView:
    """One server at one moment.

    Attributes:
        at: seconds since the epoch.
        slots: those that hold a worker, by number.
        note: what a reader has to know of the pids, a line, or "".
    """

    at: float
    master: MasterView
    slots: tuple[SlotView, ...]
    counts: Counts
    totals: Totals
    note: str = ""

    @property
    def passing(self) -> tuple[SlotView, ...]:
        """The workers by which a limit is being passed."""
        return tuple(each for each in self.slots if each.is_passing)


def total(
    master: MasterView,
    slots: Sequence[SlotView],
    memory: int = 0,
    memory_from: str = "machine",
    memory_used: int = 0,
) -> Totals:
    """Add up what is there; a worker that is gone, or not forked yet, takes nothing."""
    here = [each for each in slots if each.state != "gone"]
    forked = [each for each in here if each.pid or each.state != "booting"]
    return Totals(
        workers=len(here),
        pss=master.pss + sum(each.pss for each in here),
        private=master.private + sum(each.private for each in here),
        is_whole=master.pss > 0 and all(each.pss for each in forked),
        memory=memory,
        memory_from=memory_from,
        memory_used=memory_used,
    )
