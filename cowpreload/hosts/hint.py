"""Say once what another setting would save, after the server has served a while.

Called at the master's turns. Must not raise.
"""

from __future__ import annotations

import contextlib
import time

from cowpreload import served
from cowpreload.board import Board
from cowpreload.hints import AFTER_TURNS, hint
from cowpreload.hosts.serving import Serving
from cowpreload.rewarm import saving
from cowpreload.settings import Settings


class Hint:
    """What is still to be said of this server."""

    def __init__(self, board: Board, settings: Settings, warms_anew: bool) -> None:
        self._board = board
        self._warms_anew = warms_anew
        self._settings = settings
        self._at = time.monotonic() + AFTER_TURNS * settings.check_interval
        self._said = False

    def turn(self, master: Serving) -> None:
        """Say it, if it is worth it; once."""
        if self._said or time.monotonic() < self._at:
            return
        with contextlib.suppress(Exception):
            line = hint(
                self._settings,
                saving(tuple(self._board)),
                served.noted(self._board),
                served.withheld(self._board),
                warms_anew=self._warms_anew,
            )
            if line:
                self._said = True
                master.say(line)
