"""What a server takes, again and again: the master's memory and descriptors, fresh
workers, zombies, tickets.

Takes a server; gives series for slopes. Reads /proc and the board, and nothing of the
server notices. Right after a reload of uWSGI's there is no board for a moment: such a
look is left out and counted.
"""

from __future__ import annotations

import contextlib
import os
import time

from harness.order import all_children
from harness.processes import alive, stat
from harness.server import Server

from cowpreload import _core, servers
from cowpreload.board import open_board
from cowpreload.errors import NativeError, NotFoundError
from cowpreload.units import MIB
from soak.slopes import Sample

OLD_ZOMBIE = 20.0  # seconds: the master is busy for 10 at most, in a warm up anew
SLOT = 0x7FF  # a ticket's lowest bits: see board.h
STARTED = 19  # the start time's place in what `stat` gives


class Samples:
    """The series of one server. Sizes in MiB.

    Attributes:
        generations: each worker that became ready, as (board, slot, generation).
        zombies: children that were dead for longer than the master is ever busy.
        tickets: the most that were held at once.
        missed: looks that gave nothing.
        freezes: of all boards.
    """

    def __init__(self, server: Server, cow: bool) -> None:
        self._server, self._cow = server, cow
        self.descriptors: list[Sample] = []
        self.private: list[Sample] = []
        self.pss: list[Sample] = []
        self.resident: list[Sample] = []
        self.fresh: list[Sample] = []
        self.generations: set[tuple[int, int, int]] = set()
        self.zombies: set[tuple[int, str]] = set()
        self._dead: dict[tuple[int, str], float] = {}
        self.freezes: set[tuple[int, int]] = set()
        self.tickets = self.missed = 0

    def look(self) -> None:
        """Take one sample of everything."""
        at = time.monotonic()
        try:
            segment = self._look_at_board(at) if self._cow else None
            self._look_at_master(at, segment)
        except (NotFoundError, NativeError, OSError):
            self.missed += 1
        self._look_for_zombies(at)

    def _look_at_master(self, at: float, segment: object) -> None:
        pid = self._server.pid
        reading = _core.take_reading(pid)
        self.descriptors.append(Sample(at, len(os.listdir(f"/proc/{pid}/fd"))))
        self.private.append(Sample(at, reading.private / MIB, segment))
        self.pss.append(Sample(at, reading.pss / MIB, segment))
        self.resident.append(Sample(at, reading.rss / MIB, segment))

    def _look_at_board(self, at: float) -> object:
        """Note workers and tickets; what the master's memory may be compared with."""
        board = open_board(self._server.pid)
        try:
            view = servers.look(board, older_than=3600.0)
            made = int(board.raw.made_at_ms)
            self.tickets = max(self.tickets, sum(map(bool, board.raw.tickets)))
        finally:
            board.close()
        frozen = view.master.frozen.generation if view.master.frozen else 0
        self.freezes.add((made, frozen))
        for each in view.slots:
            key = made, each.slot, each.generation
            if each.ready_private and key not in self.generations:
                self.generations.add(key)
                self.fresh.append(Sample(at, each.ready_private / MIB))
        return made, frozen

    def _look_for_zombies(self, at: float) -> None:
        dead = {}
        with contextlib.suppress(OSError):  # a thread has ended, or all
            for pid in all_children(self._server.pid):
                fields = stat(pid)
                if fields[:1] == ["Z"]:
                    key = pid, fields[STARTED]
                    dead[key] = self._dead.get(key, at)
        self._dead = dead
        self.zombies |= {key for key, since in dead.items() if at - since > OLD_ZOMBIE}

    def unsettled(self) -> tuple[int, int]:
        """Tickets whose slot has a worker that stays; slots whose worker is not ready.

        The ticket of a slot that stays empty is taken by the next who wants one.
        """
        if not self._cow or not alive(self._server.pid):
            return 0, 0
        board = open_board(self._server.pid)
        try:
            slots = [int(each) & SLOT for each in board.raw.tickets if each]
            states = {each.slot: each.state for each in board}
        finally:
            board.close()
        stay = [slot for slot in slots if states.get(slot) == "ready"]
        return len(stay), sum(each != "ready" for each in states.values())

    def workers(self) -> list[int]:
        """Pids of what serves: a trial's child, too, is a child of the master."""
        if not self._cow:
            return self._server.workers()
        try:
            board = open_board(self._server.pid)
        except (NotFoundError, NativeError, OSError):
            return []
        try:
            return [each.pid for each in board if each.pid]
        finally:
            board.close()
