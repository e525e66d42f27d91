"""What a live view adds to a table: what has happened since, bars, minutes as a line.

Takes views, one after the other; gives texts. Pure: the caller has the clock and the
terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cowpreload.report.status import mib, passing_line
from cowpreload.units import MIB
from cowpreload.view import ServerView, SlotView

PRIVATE, SHARED, EMPTY, LIMIT = "█", "░", " ", "│"
_LEVELS = "▁▂▃▄▅▆▇█"
# A limit far beyond what workers have would leave their bars a character wide.
_FAR = 2.0


def events(before: Sequence[ServerView], after: Sequence[ServerView]) -> list[str]:
    """What has happened between two readings, a line each."""
    old = {each.master.pid: each for each in before}
    found = []
    for view in after:
        known = old.pop(view.master.pid, None)
        many = f"master {view.master.pid} " if len(after) > 1 else ""
        if known is None:
            what = f"{view.master.host} {view.master.application}".strip()
            found.append(f"master {view.master.pid} has started: {what}")
        else:
            found += [f"{many}{line}" for line in _of_server(known, view)]
    found += [f"master {pid} has ended" for pid in old]
    return found


def _of_server(before: ServerView, after: ServerView) -> Iterator[str]:
    frozen, was = after.master.frozen, before.master.frozen
    if frozen and was and frozen.generation > was.generation:
        last = after.master.warmings[-1:]
        pages = sum(count for each in last for _, count in each.pages)
        yield (
            f"has warmed up anew, {pages} pages, in {frozen.seconds:.1f} s: "
            f"{frozen.inherited / MIB:.0f} MiB inherited"
        )
    old = {each.slot: each for each in before.slots}
    for slot in after.slots:
        known = old.pop(slot.slot, None)
        yield from _of_slot(known, slot)
    for slot in old.values():
        yield f"worker {slot.slot} has gone, with private {mib(slot.private)}"


def _of_slot(before: SlotView | None, after: SlotView) -> Iterator[str]:
    if before is None:
        yield f"worker {after.slot} is new, generation {after.generation}"
        return
    if after.generation != before.generation:
        last = after.last
        why = "has ended"
        if last is not None and last.generation == after.generation - 1:
            why = f"{last.action} by {last.reason}, private {mib(last.private)}"
        yield f"worker {after.slot}, now generation {after.generation}: the last {why}"
        return
    if after.is_passing and (after.over, after.leaving_for) != (
        before.over,
        before.leaving_for,
    ):
        yield passing_line(after)
    elif after.state == "leaving" != before.state:
        yield f"worker {after.slot} leaves"


@dataclass(frozen=True)
class Rate:
    """Requests a second of a slot, from two readings."""

    served: int
    at: float

    def since(self, before: Rate | None) -> float:
        """0 without an earlier reading."""
        if before is None or self.at <= before.at:
            return 0.0
        return max(0, self.served - before.served) / (self.at - before.at)


def scale(slots: Sequence[SlotView]) -> int:
    """Bytes that the longest bar stands for; at least one."""
    most = max((each.private + each.shared for each in slots), default=1)
    limits = [
        limit
        for each in slots
        for limit in (each.soft, each.max_private_hard)
        if limit <= _FAR * most
    ]
    return max(most, *limits, 1)


def bar(slot: SlotView, whole: int, width: int) -> str:
    """Private, then shared memory; a line where a limit on private memory is.

    Args:
        whole: bytes that `width` characters stand for; a limit beyond is not shown.
    """

    def place(size: int) -> int:
        return round(size * width / whole)

    private = place(slot.private) or int(slot.private > 0)
    shared = min(place(slot.private + slot.shared), width)
    cells = [
        PRIVATE if at < private else SHARED if at < shared else EMPTY
        for at in range(width)
    ]
    for limit in (slot.soft, slot.max_private_hard):
        if 0 < limit <= whole:
            cells[min(place(limit), width - 1)] = LIMIT
    return "".join(cells)


def spark(values: Sequence[int], width: int) -> str:
    """The last values as a line of blocks; several a block where there are more."""
    if not values or width < 1:
        return ""
    step = -(-len(values) // width)
    first = len(values) % step
    parts = [values[:first]] if first else []
    parts += [values[at : at + step] for at in range(first, len(values), step)]
    tops = [max(part) for part in parts]
    low, high = min(tops), max(tops)
    if high - low < high / 50:  # else noise would look like growth
        low = high - max(high // 5, 1)
    span = max(1, high - low)
    return "".join(_LEVELS[(top - low) * (len(_LEVELS) - 1) // span] for top in tops)
