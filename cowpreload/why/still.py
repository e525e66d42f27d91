"""Ask a worker of ours for a still copy: a fork that runs nothing and can be read.

The worker's watching thread looks for the request once a second and makes the copy
between two looks, so that a worker that is busy or hangs can take part, and no request
waits for Python. Every step has a deadline; a worker that does not answer is read live.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from cowpreload import pids
from cowpreload._core import ffi, lib
from cowpreload.board import Board

ANSWER = 5.0  # seconds that a worker has for each step
_STEP = 0.001
_BEAT: float = lib.COW_STILL_ALONE_MS / 1000 / 20
_HELD: int = lib.COW_STILL_HELD
_FAILED: int = lib.COW_STILL_FAILED


class Still:
    """A still copy of the worker in one slot, until the block ends.

    Attributes:
        pid: of the copy; 0 if there is none.
        pause: seconds that the system took to make it.
        why_not: why there is none.
    """

    def __init__(self, board: Board, slot: int, before: Callable[[], object]) -> None:
        self._still: Any = ffi.addressof(board.raw.slot[slot - 1], "still")
        self._before, self._worker = before, board.holder
        self._asked = False
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True)
        self.pid, self.pause, self.why_not = 0, 0.0, ""

    def __enter__(self) -> Still:
        try:
            self._ask()
        except BaseException:  # an interrupt, too: the copy ends at once
            self._give_up()
            raise
        return self

    def _beat(self) -> None:
        """Show the copy that this report lives: it ends by itself when none does."""
        while not self._ended.is_set():
            self._still.beats = (self._still.beats + 1) & 0xFFFFFFFF
            self._ended.wait(_BEAT)

    def _ask(self) -> None:
        still = self._still
        # The worker notices within a second that the copy before was released.
        self._wait(lambda: still.state != lib.COW_STILL_RELEASED)
        # A failure is told to the report that asked; it may have gone before.
        for state in lib.COW_STILL_NONE, _FAILED:
            self._asked = bool(lib.cow_still_move(still, state, lib.COW_STILL_WANTED))
            if self._asked:
                break
        if self._asked:
            self._beats.start()
        if not self._asked:
            self.why_not = "another report of this worker is under way"
        elif not self._wait(lambda: still.state == lib.COW_STILL_ATTENDING):
            self._give_up()
            self.why_not = "its watching thread did not answer"
        else:
            # The page map, at the last moment: a fork makes every page shared again.
            self._before()
            self._make()

    def _make(self) -> None:
        still = self._still
        if not lib.cow_still_move(still, lib.COW_STILL_ATTENDING, lib.COW_STILL_GO):
            self.why_not = "the page map took too long to read"
        elif not self._wait(
            lambda: still.state == _FAILED or (still.state == _HELD and still.us)
        ):
            self._give_up()
            self.why_not = "its watching thread did not make it"
        elif still.state == _HELD:
            self.pid, self.pause = self._seen(still.pid), still.us / 1e6
            if not self.pid:
                self._give_up()
                self.why_not = "the copy is in a pid namespace that is not seen here"
        else:
            self.why_not = f"no copy was made ({os.strerror(still.error)})"
            lib.cow_still_move(still, _FAILED, lib.COW_STILL_NONE)

    def _seen(self, pid: int) -> int:
        """The copy as we see it: a child of the worker, which may be in a container."""
        if not pids.is_inside(self._worker):
            return pid
        return pids.seen(pid, pids.children(self._worker))

    def _give_up(self) -> None:
        """Leave the slot to the next report; a copy ends when it is not HELD."""
        self._ended.set()
        if self._asked:
            asked = (lib.COW_STILL_WANTED, lib.COW_STILL_ATTENDING, lib.COW_STILL_GO)
            for state in asked:
                lib.cow_still_move(self._still, state, lib.COW_STILL_NONE)
            lib.cow_still_move(self._still, _HELD, lib.COW_STILL_RELEASED)

    def _wait(self, condition: Callable[[], object]) -> bool:
        deadline = time.monotonic() + ANSWER
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(_STEP)
        return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self.pid:
            lib.cow_still_move(self._still, _HELD, lib.COW_STILL_RELEASED)
        if self._asked:
            self._beats.join()
