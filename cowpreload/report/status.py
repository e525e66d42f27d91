"""Running servers for a terminal: a table each, and what is to be said of them.

Takes views; gives texts of 100 columns, or fewer where the terminal has fewer: then
columns are left out, the least important first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill

from cowpreload.units import MIB, format_age
from cowpreload.view import Counts, Frozen, ServerView, SlotView, Totals

WIDTH = 100
_UNREADABLE = "the master cannot be read"
_SHORT = {"max-private": "private", "max-growth": "growth", "max-private-hard": "hard"}


@dataclass(frozen=True)
class _Column:
    """A column of the table; of those with a number, the highest is left out first."""

    head: str
    width: int
    text: Callable[[SlotView], str]
    least: int = 0
    right: bool = True


def mib(size: int) -> str:
    """A size in MiB, as all tables of servers show it."""
    return f"{size / MIB:.1f}"


def _shortest(size: int) -> str:
    return mib(size).removesuffix(".0") if size else "-"


def limits_text(slot: SlotView) -> str:
    """Soft and hard limit in MiB, as private sizes: `128/200`, `128`, `-/200`, `-`."""
    hard = slot.max_private_hard
    return _shortest(slot.soft) + (f"/{_shortest(hard)}" if hard else "")


def last_text(slot: SlotView) -> str:
    """Why this slot's worker, or one before it, was told to go; `-`: none was."""
    if slot.last is None:
        return "-"
    return _SHORT.get(slot.last.reason, slot.last.reason)


_COLUMNS = (
    _Column("slot", 4, lambda each: str(each.slot)),
    _Column("gen", 4, lambda each: str(each.generation), 4),
    _Column("pid", 7, lambda each: str(each.pid)),
    _Column("state", 7, lambda each: each.state, right=False),
    _Column("requests", 8, lambda each: str(each.requests), 3),
    _Column("private ", 8, lambda each: mib(each.private) + " !"[each.is_passing]),
    _Column("limit", 8, limits_text),
    _Column("growth", 6, lambda each: mib(each.grown), 5),
    _Column("evict", 6, lambda each: mib(each.evictable), 8),
    _Column("shared", 7, lambda each: mib(each.shared), 6),
    _Column("pss", 7, lambda each: mib(each.pss)),
    _Column("age", 6, lambda each: format_age(each.age), 2),
    _Column("last", 8, last_text, 7, right=False),
)


def _columns(width: int) -> list[_Column]:
    kept = list(_COLUMNS)
    for least in range(max(each.least for each in _COLUMNS), 0, -1):
        if sum(each.width + 1 for each in kept) - 1 <= width:
            break
        kept = [each for each in kept if each.least != least]
    return kept


def slots_table(slots: Sequence[SlotView], width: int = WIDTH) -> str:
    """One line a worker; sizes in MiB, `!` where a limit is being passed."""
    columns = _columns(width)
    rows = [[each.head for each in columns]]
    rows += [[column.text(slot) for column in columns] for slot in slots]
    widths = [each.width if each.right else -each.width for each in columns]
    return "\n".join(" ".join(map(_padded, row, widths)).rstrip() for row in rows)


def _padded(text: str, width: int) -> str:
    return text.rjust(width) if width > 0 else text.ljust(-width)


def head_line(view: ServerView) -> str:
    """Which server it is."""
    master = view.master
    what = " ".join(each for each in (master.host, master.application) if each)
    workers = "1 worker" if len(view.slots) == 1 else f"{len(view.slots)} workers"
    return (
        f"master {master.pid}{': ' if what else ''}{what}, {workers}, "
        f"up {format_age(master.age)}; MiB"
    )


def totals_text(totals: Totals) -> str:
    """What the server takes, of what there is."""
    least = "" if totals.is_whole else "at least "
    text = f"total PSS {least}{mib(totals.pss)}"
    if totals.memory:
        where = "machine" if totals.memory_from == "machine" else "control group"
        share = totals.pss / totals.memory
        text += f" of {totals.memory / MIB:.0f} ({share:.1%} of the {where})"
    if totals.budget:
        mark = " !" if totals.is_over else ""
        text += f", budget {_shortest(totals.budget)}{mark}"
    return text


def share_line(totals: Totals) -> str:
    """What the budget leaves each worker, and whether it is passed; "" without one."""
    if not totals.budget:
        return ""
    text = (
        f"counted {mib(totals.counted)} of the budget {_shortest(totals.budget)}, "
        f"which leaves each worker private {mib(totals.share)}"
    )
    return f"{text}: the server is over it" if totals.is_over else text


def master_line(view: ServerView) -> str:
    """What the server takes, and its master of it."""
    master = view.master
    own = f"master PSS {mib(master.pss)}, private {mib(master.private)}"
    return f"{totals_text(view.totals)}; {own if master.pss else _UNREADABLE}"


def freeze_line(frozen: Frozen | None) -> str:
    """The last freeze; "" if there is none."""
    if frozen is None:
        return ""
    times = f"freeze {frozen.generation}" if frozen.generation > 1 else "frozen"
    return (
        f"{times} {format_age(frozen.age)} ago, in {frozen.seconds:.2f} s: "
        f"{frozen.inherited / MIB:.0f} inherited, {frozen.objects} objects, "
        f"{frozen.immortal} immortal"
    )


def counts_line(counts: Counts) -> str:
    """What has happened to workers since the start; "" if nothing has."""
    parts = [
        f"{done} {', '.join(f'{many} {why}' for why, many in row if many)}"
        for done, row in (("recycled", counts.recycled), ("killed", counts.killed))
        if any(many for _, many in row)
    ]
    if counts.unheeded:
        parts.append(f"told again {counts.unheeded}")
    if counts.readings_failed:
        parts.append(f"readings failed {counts.readings_failed}")
    return "since the start: " + "; ".join(parts) if parts else ""


def passing_line(slot: SlotView) -> str:
    """What limit is being passed, and what becomes of the worker."""
    name = f"worker {slot.slot}"
    if slot.leaving_for:
        assert slot.last is not None
        passed = f"limit {mib(slot.last.limit)}"
        if slot.last.total:
            passed = f"the server {mib(slot.last.total)} of {mib(slot.last.limit)}"
        return (
            f"{name} leaves because of {slot.leaving_for}: it had private "
            f"{mib(slot.last.private)}, {passed}"
        )
    limit = {
        "max-private": slot.max_private,
        "max-growth": slot.ready_private + slot.max_growth,
        "max-private-hard": slot.max_private_hard,
    }[slot.over]
    text = f"{name} is over {slot.over}: private {mib(slot.private)}"
    text += f", limit {mib(limit)}"
    if slot.wanted and slot.over != "max-private-hard":
        text += f", strikes {slot.strikes} of {slot.wanted}"
    return text


def status_text(view: ServerView, width: int = WIDTH) -> str:
    """One server."""
    above = [head_line(view), master_line(view), freeze_line(view.master.frozen)]
    above += [share_line(view.totals), counts_line(view.counts)]
    below = [passing_line(each) for each in view.passing]
    lines = [*_filled(above, width), slots_table(view.slots, width)]
    return "\n".join([*lines, *_filled(below, width)])


def _filled(lines: Sequence[str], width: int) -> list[str]:
    return [fill(line, width, subsequent_indent="  ") for line in lines if line]
