"""How a metric is declared, and read out of a view. Pure.

metrics.py declares all of them with these. What could not be read has no sample: a zero
would be a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cowpreload.view import MasterView, ServerView, SlotView

PREFIX: Final = "cowpreload"
GAUGE: Final = "gauge"
COUNTER: Final = "counter"

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]
Read = Callable[[ServerView], Iterable[Sample]]


@dataclass(frozen=True)
class Metric:
    """A declaration.

    Attributes:
        name: without `_total`, which a counter's samples have.
        labels: beside `server`.
        read: the samples of one server.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    read: Read

    @property
    def sample_name(self) -> str:
        """The name of its samples, which a query uses."""
        return f"{self.name}_total" if self.kind == COUNTER else self.name

    @property
    def unit(self) -> str:
        """`bytes`, `seconds`, or ""."""
        last = self.name.rpartition("_")[2]
        return last if last in ("bytes", "seconds") else ""


@dataclass(frozen=True)
class Family:
    """A metric and its samples, of all servers."""

    metric: Metric
    samples: tuple[Sample, ...]


def one(read: Callable[[ServerView], float | None]) -> Read:
    """One sample a server; none where the value is None."""

    def samples(view: ServerView) -> Iterator[Sample]:
        value = read(view)
        if value is not None:
            yield (), value

    return samples


def slots(read: Callable[[SlotView], float | None]) -> Read:
    """One sample for each slot that holds a worker."""

    def samples(view: ServerView) -> Iterator[Sample]:
        for slot in view.slots:
            value = None if slot.state == "gone" else read(slot)
            if value is not None:
                yield (("slot", str(slot.slot)),), value

    return samples


def by_reason(read: Callable[[ServerView], Sequence[tuple[str, int]]]) -> Read:
    """One sample for each reason to go."""

    def samples(view: ServerView) -> Iterator[Sample]:
        for reason, count in read(view):
            yield (("reason", reason),), count

    return samples


def master(read: Callable[[MasterView], float]) -> Read:
    """Of a master that could be read."""
    return one(lambda view: read(view.master) if view.master.pss else None)


def known(read: Callable[[SlotView], float]) -> Read:
    """Of a worker that was read at least once: it has memory of its own."""
    return slots(lambda slot: read(slot) if slot.rss else None)


def info(view: ServerView) -> Iterator[Sample]:
    """1, with what is only to be read as labels."""
    master = view.master
    yield (("host", master.host), ("application", master.application)), 1


def memory(read: Callable[[ServerView], float]) -> Read:
    """Of what the server may take, where that is known, and who says so."""

    def samples(view: ServerView) -> Iterator[Sample]:
        source = "machine" if view.totals.memory_from == "machine" else "cgroup"
        if view.totals.memory:
            yield (("source", source),), read(view)

    return samples


def gauge(name: str, help: str, read: Read, *labels: str) -> Metric:
    """What rises and falls."""
    return Metric(f"{PREFIX}_{name}", GAUGE, help, labels, read)


def counter(name: str, help: str, read: Read, *labels: str) -> Metric:
    """What only rises, while its server runs."""
    return Metric(f"{PREFIX}_{name}", COUNTER, help, labels, read)
