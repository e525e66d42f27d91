"""The rows of the live view: which columns there is room for, and what is in them.

Takes views; gives rich texts. Pure. The word of a column is that of `status`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from cowpreload.report.live import LIMIT, PRIVATE, bar, spark
from cowpreload.report.status import last_text, limits_text, mib, totals_text
from cowpreload.units import format_age
from cowpreload.view import ServerView, SlotView

_BAR_LEAST, _BAR_MOST = 10, 60


# By what rows are sorted; a worker, and its requests a second.
SORTS: dict[str, Callable[[SlotView, float], Any]] = {
    "slot": lambda slot, rate: slot.slot,
    "private": lambda slot, rate: -slot.private,
    "growth": lambda slot, rate: -slot.grown,
    "pss": lambda slot, rate: -slot.pss,
    "req/s": lambda slot, rate: -rate,
    "age": lambda slot, rate: -slot.age,
}
# Head, width, whether it is left out first: from the highest.
_COLUMNS = (
    ("slot", 4, 0),
    ("gen", 4, 3),
    ("pid", 7, 2),
    ("state", 7, 5),
    ("req/s", 6, 1),
    ("private", 8, 0),
    ("bar", _BAR_LEAST, 0),
    ("limit", 8, 0),
    ("growth", 6, 4),
    ("pss", 7, 0),
    ("age", 6, 1),
    ("last", 8, 6),
)
_LEFT = ("state", "bar", "last")


def columns(width: int) -> list[tuple[str, int]]:
    """Heads and widths of those that there is room for; the bar takes what is left."""
    kept = list(_COLUMNS)
    for least in range(6, 0, -1):
        if sum(each[1] + 1 for each in kept) <= width:
            break
        kept = [each for each in kept if each[2] != least]
    spare = width - sum(each[1] + 1 for each in kept)
    widest = min(max(_BAR_LEAST + spare, 4), _BAR_MOST)
    return [(head, widest if head == "bar" else size) for head, size, _ in kept]


def label(head: str, width: int, is_sorted: bool) -> Text:
    """What stands above a column."""
    text = "" if head == "bar" else head
    return Text(_cell(head, f"{text}↓" if is_sorted else text, width))


def row(
    slot: SlotView,
    rate: float,
    whole: int,
    heads: Sequence[tuple[str, int]],
    letter: str = "",
) -> list[Text]:
    """The cells of a worker.

    Args:
        rate: requests a second.
        whole: bytes that the bar's width stands for.
        letter: of its server, before the number of its slot.
    """
    texts = [
        letter * (head == "slot") + _text(head, slot, rate, whole, width)
        for head, width in heads
    ]
    return [
        _colour(head, slot, _cell(head, text, width))
        for (head, width), text in zip(heads, texts, strict=True)
    ]


def server_head(
    view: ServerView,
    totals: Sequence[int],
    width: int,
    letter: str = "",
    *,
    short: bool = False,
) -> Text:
    """Who a server is; what it takes, now and in the last minutes. Two lines, or one.

    Args:
        totals: PSS at the last readings, bytes.
        letter: what its workers have before their slot.
    """
    master = view.master
    what = " ".join(each for each in (master.host, master.application) if each)
    line = Text(f"{letter} {what or 'server'}".strip(), style="bold")
    own = f"{totals_text(view.totals)} MiB"
    if short:
        line.truncate(max(10, width - len(own) - 15), overflow="ellipsis")
        line.append(f" {own} ", "not bold")
        return line.append(spark(totals, min(width - len(line) - 1, 40)), "cyan")
    line.append(f", master {master.pid}, up {format_age(master.age)}", "not bold")
    own += f"; master {mib(master.pss)}  "
    minutes = spark(totals, min(width - len(own) - 1, 40))
    return line.append(f"\n{own}", "not bold").append(minutes, "cyan")


def _cell(head: str, text: str, width: int) -> str:
    """A space parts it from the next."""
    padded = text.ljust(width) if head in _LEFT else text.rjust(width)
    return f"{padded} "


def _text(head: str, slot: SlotView, rate: float, whole: int, width: int) -> str:
    if head == "bar":
        return bar(slot, whole, width)
    return {
        "slot": str(slot.slot),
        "gen": str(slot.generation),
        "pid": str(slot.pid),
        "state": slot.state,
        "req/s": f"{rate:.1f}" if rate < 1000 else f"{rate:.0f}",
        "private": mib(slot.private) + " !"[slot.is_passing],
        "limit": limits_text(slot),
        "growth": mib(slot.grown),
        "pss": mib(slot.pss),
        "age": format_age(slot.age),
        "last": last_text(slot),
    }[head]


def _colour(head: str, slot: SlotView, text: str) -> Text:
    if head != "bar":
        style = "bold red" if slot.is_passing and head == "private" else ""
        style = style or ("dim" if slot.state != "ready" else "")
        return Text(text, style=style)
    shown = Text(text, style="grey58")
    for at, cell in enumerate(text):
        if cell == PRIVATE:
            shown.stylize("red" if slot.is_passing else "green", at, at + 1)
        elif cell == LIMIT:
            shown.stylize("bold yellow", at, at + 1)
    return shown
