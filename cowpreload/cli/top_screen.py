"""The live view in a terminal, drawn by textual; imported only where there is one.

Takes what gives a reading, and how often; shows it, and what happens between two.
Readings are taken on a thread, so that keys answer while a large server is read.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, RichLog, Static

from cowpreload.cli.renewing import renew
from cowpreload.cli.top_rows import SORTS, columns, label, row, server_head
from cowpreload.errors import RAISED
from cowpreload.report.live import Rate, events, scale
from cowpreload.units import MIB
from cowpreload.view import ServerView, SlotView

Key = tuple[int, int]
"""A worker: its master's pid, its slot."""

_KEPT = 1800  # readings in the line of minutes: an hour at 2 s


class Question(ModalScreen[bool]):
    """A question that y or n answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "dismiss(True)", "yes"),
        ("n,escape,q", "dismiss(False)", "no"),
    ]
    CSS = """
    Question { align: center middle; }
    Question > Static { width: 60; padding: 1 2; border: round $warning; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static(Text(f"{self._text}\n\ny: yes    n: no"))


class Report(ModalScreen[None]):
    """A long text, to be scrolled and closed."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,w", "dismiss(None)", "close")]
    CSS = """
    Report > VerticalScroll { overflow: auto auto; scrollbar-size: 1 1; }
    Report Static { width: auto; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._shown = Static(Text(text))

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield self._shown
        yield Footer()

    def show(self, text: str) -> None:
        """Another text in the place of the first."""
        self._shown.update(Text(text))


class Top(App[None]):
    """All servers, their workers, the last events."""

    TITLE = "cowpreload top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("s", "sort", "Sort"),
        ("r", "recycle", "Recycle worker"),
        ("w", "why", "Why private"),
        ("q", "quit", "Quit"),
    ]
    CSS = """
    #head { height: auto; padding: 0 0 1 0; }
    DataTable { height: 1fr; }
    RichLog { height: 6; border-top: solid $primary; }
    """

    def __init__(
        self, take: Callable[[], list[ServerView]], interval: float = 2.0
    ) -> None:
        super().__init__()
        self._take, self._interval = take, interval
        self._views: list[ServerView] = []
        self._totals: dict[int, deque[int]] = {}
        self._rates: dict[Key, tuple[Rate, float]] = {}
        self._slots: dict[str, tuple[int, SlotView]] = {}
        self._sort = "slot"
        self._reading = False

    # ---- drawing ---------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        table: DataTable[Text] = DataTable(cursor_type="row", cell_padding=0)
        table.can_focus = True
        yield table
        yield RichLog(max_lines=500, wrap=True)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(DataTable).focus()
        self.query_one(RichLog).can_focus = False
        self._begin_reading()
        self.set_interval(self._interval, self._begin_reading)

    def on_resize(self) -> None:
        self._draw()

    def _begin_reading(self) -> None:
        if not self._reading:  # a slow one is not overtaken
            self._reading = True
            self.run_worker(self._read, thread=True)

    def _read(self) -> None:
        try:
            views = self._take()
        except RAISED:  # the next reading may do better
            views = []
        self.call_from_thread(self._came, views)

    def _came(self, views: list[ServerView]) -> None:
        self._reading = False
        if self._views:
            for line in events(self._views, views):
                self._say(line)
        totals, rates = self._totals, self._rates
        self._totals, self._rates = {}, {}  # of those that are gone, nothing is kept
        for view in views:
            pid = view.master.pid
            self._totals[pid] = totals.get(pid, deque(maxlen=_KEPT))
            self._totals[pid].append(view.totals.pss)
            for slot in view.slots:
                now, before = Rate(slot.served, view.at), rates.get((pid, slot.slot))
                self._rates[pid, slot.slot] = now, now.since(before and before[0])
        self._views = views
        self._draw()

    def _say(self, line: str) -> None:
        stamp = time.strftime("%H:%M:%S")
        self.query_one(RichLog).write(Text(f"{stamp} {line}"), expand=True)

    def _draw(self) -> None:
        if not self.is_running:
            return
        self.query_one("#head", Static).update(self._heads())
        table = self.query_one(DataTable)
        heads_of = columns(self.size.width - 2)  # a scroll bar
        at, top = table.cursor_row, table.scroll_y
        chosen = self._chosen_key()
        with self.batch_update():
            table.clear(columns=True)
            for head, width in heads_of:
                above = label(head, width, head == self._sort)
                table.add_column(above, width=width + 1)
            self._add_rows(table, heads_of)
            keys = list(self._slots)
            if keys:
                place = keys.index(chosen) if chosen in self._slots else at
                table.move_cursor(row=min(place, len(keys) - 1), scroll=False)
                table.scroll_to(y=top, animate=False)

    def _heads(self) -> Text:
        """Two lines a server; one where that would leave no room for workers."""
        short = 6 * len(self._views) > self.size.height
        heads = [
            server_head(
                each,
                [*self._totals[each.master.pid]],
                self.size.width,
                self._letter(at),
                short=short,
            )
            for at, each in enumerate(self._views)
        ]
        return Text("\n").join(heads or [Text("no server runs", style="bold")])

    def _add_rows(self, table: DataTable[Text], heads: list[tuple[str, int]]) -> None:
        """All workers: by server, or across servers in the order that was asked for."""
        order = SORTS[self._sort]
        found = [
            (at, view.master.pid, slot, self._rates[view.master.pid, slot.slot][1])
            for at, view in enumerate(self._views)
            for slot in view.slots
        ]
        if self._sort != "slot":
            found.sort(key=lambda each: order(each[2], each[3]))
        whole = scale([each[2] for each in found])
        self._slots = {}
        for at, pid, slot, rate in found:
            key = f"{pid}:{slot.slot}"
            self._slots[key] = (pid, slot)
            table.add_row(*row(slot, rate, whole, heads, self._letter(at)), key=key)

    def _letter(self, at: int) -> str:
        """Tells whose a worker is, where there are several servers."""
        return chr(ord("a") + at % 26) if len(self._views) > 1 else ""

    # ---- keys ------------------------------------------------------------

    def _chosen_key(self) -> str:
        keys = list(self._slots)
        at = self.query_one(DataTable).cursor_row
        return keys[at] if 0 <= at < len(keys) else ""

    def action_sort(self) -> None:
        """By the next column."""
        names = list(SORTS)
        self._sort = names[(names.index(self._sort) + 1) % len(names)]
        self._draw()
        self.query_one(DataTable).move_cursor(row=0)  # what was asked for is there

    def action_recycle(self) -> None:
        """Ask for the chosen worker to be replaced, after a question."""
        chosen = self._slots.get(self._chosen_key())
        if chosen is None:
            return
        pid, slot = chosen

        def answered(yes: bool | None) -> None:
            if yes:
                self._say(renew(pid or slot.pid, slot.slot, slot.generation))

        self.push_screen(
            Question(
                f"Recycle worker {slot.slot} (pid {slot.pid}, private "
                f"{slot.private / MIB:.1f} MiB)? It finishes its requests, and a fresh "
                "one takes its place."
            ),
            answered,
        )

    def action_why(self) -> None:
        """What makes the chosen worker's memory private: another command's report."""
        chosen = self._slots.get(self._chosen_key())
        if chosen is None:
            return
        report = Report(f"cowpreload why {chosen[1].pid} ...")
        self.push_screen(report)
        command = [sys.executable, "-m", "cowpreload", "why", str(chosen[1].pid)]

        def ask() -> None:
            # `-m` looks for modules in the working directory, which may be anybody's.
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd="/"
            )
            self.call_from_thread(report.show, done.stdout or done.stderr)

        self.run_worker(ask, thread=True)
