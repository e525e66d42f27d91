"""Say once what a server without any warm up could save, after it has served a while.

Called at the master's turns, where there is nothing to learn from traffic.
Must not raise.
"""

from __future__ import annotations

import contextlib
import time

from cowpreload.board import Board
from cowpreload.hosts.serving import Serving
from cowpreload.rewarm import saving
from cowpreload.settings import Settings
from cowpreload.units import MIB

# In check intervals: what a worker makes at its first requests is made by then.
_AFTER_TURNS = 60


class Hint:
    """What is still to be said of this server."""

    def __init__(self, board: Board, settings: Settings) -> None:
        self._board = board
        self._settings = settings
        self._at = time.monotonic() + _AFTER_TURNS * settings.check_interval
        self._said = False

    def turn(self, master: Serving) -> None:
        """Say it, if it is worth it; once."""
        if self._said or time.monotonic() < self._at:
            return
        with contextlib.suppress(Exception):
            grown = saving(tuple(self._board))
            if grown >= self._settings.warmup_worth:
                self._said = True
                master.say(
                    f"cow: warmup=unset: the workers have grown by {grown // MIB}MiB "
                    "since they were ready; cow-warmup=auto would save a part of it"
                )
