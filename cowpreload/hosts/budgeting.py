"""The master's part in the budget of the whole server, on either host.

Takes the settings and the board; puts the bytes there, and what the master itself
takes, read from turn to turn. Who is to go, the workers' own watching threads decide
(native/budget.c). What cannot be kept is said once, and ends nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cowpreload import budget
from cowpreload._core import ffi, lib
from cowpreload.board import Board
from cowpreload.capacity import capacity
from cowpreload.event_log import tell
from cowpreload.events import Event, event
from cowpreload.hosts.unasked import unasked
from cowpreload.settings import Settings
from cowpreload.units import MIB

# A reading of the master takes at most this share of a core, 20 ms a GiB, and the
# master's other turns wait for it; it changes when it warms up anew. Over the budget it
# is read again as often as workers are near it.
_SHARE, _SHARE_OVER = 1 / 2000, 1 / 400
_LEAST_SECONDS = 1.0
# Turns in a row before it is said that nobody can be recycled: workers come and go.
_TURNS = 5


@dataclass(frozen=True)
class NoRoom:
    """The server is over its budget, and recycling would not help.

    Attributes:
        budget, total: of the whole server.
        workers: that it has.
        fresh: private memory of a fresh one.
        fits: how many fresh ones the budget has room for.
    """

    budget: int
    total: int
    workers: int
    fresh: int
    fits: int

    def line(self) -> str:
        """One log line, without a newline."""
        why = "no worker would give back an eighth of its memory"
        if self.fits < self.workers:
            why = "fresh workers would exceed it, too"
        return (
            f"cow: budget={self.budget // MIB}MiB total={self.total // MIB}MiB "
            f"workers={self.workers} fresh={self.fresh // MIB}MiB fits={self.fits}: "
            f"{why}, and none is recycled for it; run fewer, or raise cow-budget"
        )

    def event(self) -> Event:
        """Of the kind `no_room`."""
        return event(
            "no_room",
            budget_bytes=self.budget,
            total_bytes=self.total,
            workers=self.workers,
            fresh_bytes=self.fresh,
            fits=self.fits,
        )


class Budgeting:
    """What was read of the master, and what was said."""

    def __init__(self) -> None:
        self._say: Callable[[str], object] = print
        self._raised: Callable[[str], object] = print
        self._found: budget.Found | None = None
        self._next_ms = self._next_over_ms = 0
        self._turns = 0
        self._said: set[object] = set()

    def tell(
        self,
        board: Board | None,
        settings: Settings,
        say: Callable[[str], object],
        say_raised: Callable[[str], object],
    ) -> None:
        """Put the budget on the board: at the start, and again at a reload.

        Args:
            say: logs a line.
            say_raised: likewise, with the traceback of what is handled.
        """
        if board is None:
            return
        self._say, self._raised = say, say_raised
        with unasked("budget", say_raised):
            found = budget.find(settings.budget, capacity())
            if found == self._found:
                return
            if found.line:
                say(found.line)
            self._found, self._turns = found, 0
            self._said.clear()
            if found.bytes:
                self._read(board)
            board.raw.whole.budget = found.bytes

    def turn(self, board: Board | None) -> None:
        """At a turn of the master; must not raise."""
        if board is None or self._found is None:
            return
        # An application's stray write may have reached the board.
        board.raw.whole.budget = self._found.bytes
        if not self._found.bytes:
            return
        with unasked("budget", self._raised):
            self._turn(board)

    def _turn(self, board: Board) -> None:
        now, found = lib.cow_now_ms(), ffi.new("struct cow_sum *")
        lib.cow_budget_sum(board.raw, now, found)
        is_over = found.settled > found.budget
        if now >= (self._next_over_ms if is_over else self._next_ms):
            self._read(board)
        # Not while workers come or go, or were not read yet.
        stays = is_over and not found.biggest and not found.spared
        stays = stays and found.serving == found.workers and found.fresh > 0
        self._turns = self._turns + 1 if stays else 0
        about = (found.budget, found.workers, found.fits < found.workers)
        if self._turns >= _TURNS and about not in self._said:
            self._said.add(about)
            tell(
                NoRoom(
                    budget=found.budget,
                    total=found.total,
                    workers=found.workers,
                    fresh=found.fresh,
                    fits=found.fits,
                ),
                self._say,
            )

    def _read(self, board: Board) -> None:
        reading = ffi.new("struct cow_reading *")
        began = time.thread_time()
        code = lib.cow_reading_take(0, reading)
        cost, now = time.thread_time() - began, lib.cow_now_ms()
        self._next_ms = now + round(1000 * max(cost / _SHARE, _LEAST_SECONDS))
        self._next_over_ms = now + round(1000 * max(cost / _SHARE_OVER, _LEAST_SECONDS))
        whole = board.raw.whole
        if code != lib.COW_OK:
            if not whole.read_at_ms and "unread" not in self._said:
                self._said.add("unread")
                why = ffi.string(lib.cow_strerror(code)).decode()
                self._say(
                    f"cow: budget: the master cannot be read ({why}): it counts as "
                    "if it shared nothing"
                )
            return
        whole.private_bytes = reading.private_bytes
        whole.evictable_bytes = reading.evictable_bytes
        whole.shared_once = reading.shared_pss * lib.cow_board_processes(board.raw)
        whole.read_at_ms = reading.at_ms


BUDGETING = Budgeting()
"""One for a process: it has one master."""
