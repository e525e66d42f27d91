"""What the stages hand to each other: frozen records, sizes in bytes, times in seconds.

Must not import a stage, read a clock or print.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from cowpreload.events import Event, event, whole
from cowpreload.units import MIB, format_size
from cowpreload.warmed import NOT_WARMED, Warming


@dataclass(frozen=True)
class Reading:
    """One sample of a process's memory; what the kernel counts, in bytes.

    Attributes:
        private: dirty, and the share of what is swapped out: what limits judge.
        evictable: private, but clean: the system takes it when it needs memory.
    """

    private: int
    shared: int
    pss: int
    rss: int
    evictable: int = 0


class Action(Enum):
    """What is to become of a worker."""

    KEEP = "keep"
    RECYCLE = "recycle"
    KILL = "kill"
    ASK_AGAIN = "ask again"


@dataclass(frozen=True)
class Limits:
    """The settings that a verdict is made from; 0 is a limit that is not set.

    Attributes:
        max_private, max_private_hard, max_growth: bytes.
        min_lifetime, interval: seconds.
        graceful: seconds that the host gives a worker to leave in; 0: no end.
        strikes: readings in a row over a soft limit.
        max_recycling: workers that may leave at once.
    """

    max_private: int = 0
    max_private_hard: int = 0
    max_growth: int = 0
    min_lifetime: float = 10.0
    interval: float = 1.0
    strikes: int = 3
    max_recycling: int = 1
    graceful: float = 0.0
    pressure: bool = False


@dataclass(frozen=True)
class History:
    """What a verdict knows of a worker; times in seconds of the monotonic clock."""

    ready_at: float = 0.0
    ready_private: int = 0
    jitter: float = 0.0
    over_since: float = 0.0
    strikes: int = 0
    early: int = 0
    asked_at: float = 0.0
    asked_limit: int = 0
    asked_again: bool = False


@dataclass(frozen=True)
class Verdict:
    """Keep, recycle or kill, with the limit (bytes) that is passed, if any."""

    action: Action
    reason: str
    limit: int
    strikes: int
    over_since: float
    early: int


@dataclass(frozen=True)
class WarmupReport:
    """What was requested in the master before the fork; `paths` are now warm."""

    requests: int
    warnings: tuple[str, ...]
    paths: tuple[str, ...] = ()
    warming: Warming = NOT_WARMED


@dataclass(frozen=True)
class Finding:
    """Something that does not survive a fork: what it is, where, what to do."""

    what: str
    where: str
    advice: str

    def line(self) -> str:
        """One log line, without a newline."""
        return f"cow: fork-safety {self.what} {self.where}: {self.advice}"

    def event(self) -> Event:
        """Of the kind `finding`."""
        return event("finding", what=self.what, where=self.where, advice=self.advice)


@dataclass(frozen=True)
class WalkReport:
    """What became immortal, in objects, and what was written ahead of the workers.

    Attributes:
        fault: why the walk ended early, or "".
        objects: immortal now and not before.
        kept: left mortal for keep_mortal().
        hashes, utf8, versions: strings and sets hashed, strings encoded, types tagged.
    """

    fault: str = ""
    objects: int = 0
    kept: int = 0
    hashes: int = 0
    utf8: int = 0
    versions: int = 0


@dataclass(frozen=True)
class SealReport:
    """What the seal filled.

    Attributes:
        holes: free slots and chunks between inherited objects.
        bytes: their size.
        returned: bytes of whole pages in them that went back to the system.
        unsealed: for each heap that was left as it is, which one and why.
    """

    holes: int = 0
    bytes: int = 0
    returned: int = 0
    unsealed: tuple[str, ...] = ()

    def after(self, first: SealReport) -> SealReport:
        """The sum of this seal and the one before it."""
        return replace(
            self,
            holes=self.holes + first.holes,
            bytes=self.bytes + first.bytes,
            returned=self.returned + first.returned,
        )

    def left_lines(self) -> list[str]:
        """A log line, without a newline, for each heap that was left as it is."""
        return [f"cow: seal: left as it is: {each}" for each in self.unsealed]


@dataclass(frozen=True)
class HotReport:
    """What hot code was laid side by side.

    Attributes:
        codes: code objects that were copied.
        functions: those whose code they are now.
        bytes: the size of the copies.
        why_not: why none was, or not all; "" if all were.
    """

    codes: int = 0
    functions: int = 0
    bytes: int = 0
    why_not: str = ""

    def lines(self) -> list[str]:
        """A log line, without a newline, if not all of it was."""
        if not self.why_not:
            return []
        kept = "in part" if self.codes else "off"
        return [f"cow: hot-code={kept}: {self.why_not}"]


@dataclass(frozen=True)
class FreezeReport:
    """What the freeze found and left.

    Attributes:
        objects: containers in the permanent generation.
        collected: unreachable objects that the collection freed.
        seconds: the whole stage.
        immortal: what the walk did; all zero if there was none.
        why_mortal: why there was none, or "".
        fault: what the look at the heap raised, or "".
        sealed: what the seal filled, where it follows at once (cowpreload.freeze()).
        bytes: memory of the process that a fork inherits; 0 if it was not read.
        hot: what hot code was laid side by side.
    """

    objects: int
    collected: int
    seconds: float
    immortal: WalkReport = WalkReport()
    why_mortal: str = ""
    fault: str = ""
    sealed: SealReport = SealReport()
    bytes: int = 0
    hot: HotReport = HotReport()

    def fault_lines(self) -> list[str]:
        """A log line, without a newline, for each thing that was left out."""
        lines = []
        if self.immortal.fault:
            fault = self.immortal.fault
            lines.append(f"cow: immortal in part ({fault}): frozen all the same")
        if self.fault:
            lines.append(
                f"cow: open writers not looked for ({self.fault}): frozen all the same"
            )
        return lines


@dataclass(frozen=True)
class SettleReport:
    """What a worker has settled.

    Attributes:
        objects: containers that the collector no longer looks at, of this call.
        collected: unreachable objects that were freed before.
        seconds: the whole call.
    """

    objects: int
    collected: int
    seconds: float


@dataclass(frozen=True)
class PreloadReport:
    """The sum of the stages before the fork.

    Attributes:
        seconds: since the start.
        freeze_seconds: of them, to collect, make immortal and freeze; 0: not frozen.
    """

    objects: int
    immortal: int
    hot: int
    sealed: int
    heap: int
    warmup_requests: int
    findings: int
    seconds: float
    freeze_seconds: float = 0.0

    def line(self) -> str:
        """One log line, without a newline."""
        return (
            f"cow: preload objects={self.objects} immortal={self.immortal} "
            f"hot-code={self.hot} "
            f"sealed={format_size(self.sealed)} heap={self.heap // MIB}MiB "
            f"warmup-requests={self.warmup_requests} findings={self.findings} "
            f"seconds={self.seconds:.2f}"
        )

    def event(self) -> Event:
        """Of the kind `freeze`."""
        return event(
            "freeze",
            objects=self.objects,
            immortal_objects=self.immortal,
            sealed_bytes=self.sealed,
            inherited_bytes=self.heap,
            hot_code_objects=self.hot,
            warmup_requests=self.warmup_requests,
            findings=self.findings,
            seconds=whole(self.seconds),
            freeze_seconds=whole(self.freeze_seconds) or None,
        )
