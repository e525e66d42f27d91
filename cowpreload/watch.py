"""Watch: the Python side of a worker's native watching thread.

A host calls `start` after the fork and `ready` before the first request; from then
on readings, verdict and recycling need no Python. An application asks `worker()`.
The readings themselves are native/watch.c.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace

from cowpreload import _core
from cowpreload._core import check, ffi, lib
from cowpreload.board import Board
from cowpreload.errors import NativeError
from cowpreload.records import Limits
from cowpreload.units import format_size
from cowpreload.view import SlotView


@dataclass(frozen=True)
class Host:
    """How the watching thread reaches its host; addresses are of C functions.

    Attributes:
        leave_signal: sent to the main thread when the worker may leave.
        ask_to_leave: called instead of the signal, if not 0.
        exit_now: called when the host asked for an immediate exit, if not 0.
        requests: address of the host's request counter (uint64), or 0.
        busy: called on the watching thread: whether a request is served. 0: `serves`
            is called around each, or nobody knows.
    """

    leave_signal: int = 0
    ask_to_leave: int = 0
    exit_now: int = 0
    requests: int = 0
    busy: int = 0


@dataclass(frozen=True)
class Ready:
    """What is to be logged of a worker that became ready, if anything.

    Attributes:
        text: one log line, or empty.
        refused: this worker is to stop the server, which has just started.
    """

    text: str = ""
    refused: bool = False


class Watch:
    """The watching thread of this worker, and its slot."""

    def __init__(self, board: Board, slot: int, limits: Limits, host: Host) -> None:
        self._board = board
        self.slot = slot
        self._limits = _core.limits_struct(limits)
        self._host = ffi.new(
            "struct cow_host *",
            {
                "leave_signal": host.leave_signal,
                "ask_to_leave": ffi.cast("void (*)(void)", host.ask_to_leave),
                "exit_now": ffi.cast("void (*)(void)", host.exit_now),
                "requests": ffi.cast("const uint64_t *", host.requests),
                "busy": ffi.cast("int (*)(void)", host.busy),
            },
        )
        self._jitter_ms = 0
        self._pid = os.getpid()
        self._row = board.raw.slot[slot - 1]
        self._life = self._row.life
        self._life.pid = self._pid
        check(lib.cow_watch_start(board.raw, slot, self._limits, self._host))

    def ready(self, jitter: float) -> Ready:
        """Take the reading that growth is counted from; the worker may serve.

        Args:
            jitter: most seconds of this worker's own random delay.
        """
        raw, exceeds = ffi.new("struct cow_reading *"), ffi.new("int *")
        delay = random.SystemRandom().uniform(0, jitter)
        code = lib.cow_watch_ready(round(delay * 1000), raw, exceeds)
        shared = self._board.raw
        if code != lib.COW_OK or not exceeds[0]:
            shared.started = 1
            return Ready()
        text = self._too_low(raw.private_bytes)
        if not shared.started and lib.cow_board_refuse(shared, self.slot):
            return Ready(f"cow: {text}; raise the limit", refused=True)
        if shared.refused or shared.warned:
            return Ready()
        shared.warned = 1
        return Ready(f"cow: {text}; the limit waits for a later worker, raise it")

    def _too_low(self, private: int) -> str:
        limits = self._limits
        soft = limits.max_private and private > limits.max_private
        name = "max-private" if soft else "max-private-hard"
        limit = limits.max_private if soft else limits.max_private_hard
        return (
            f"{name}={format_size(limit)}: a fresh worker has "
            f"private={format_size(private)} already"
        )

    def count(self, requests: int) -> None:
        """Post the number of requests of this generation."""
        self._row.life.requests = requests

    def serves(self, whether: bool) -> None:
        """Post whether a request is being served; one thread does."""
        self._life.busy = whether

    @property
    def told(self) -> bool:
        """Whether it was told to go: for a host that looks between two tasks."""
        return bool(self._row.life.state == _core.LEAVING)

    @property
    def asked_again(self) -> bool:
        """Whether it was told to go a second time: signals may not reach it."""
        return bool(self._row.judged.asked_again == 1)

    def leaving(self) -> None:
        """Post that the worker is at its exit handlers, whoever sent it there."""
        lib.cow_watch_leaving()

    def view(self) -> SlotView:
        """This worker's slot, with a reading taken now."""
        try:
            reading = _core.take_reading()
        except NativeError:
            return self._board.view(self.slot)
        memory = self._row.memory
        memory.private_bytes, memory.shared_bytes = reading.private, reading.shared
        memory.evictable_bytes = reading.evictable
        memory.pss, memory.rss = reading.pss, reading.rss
        memory.read_at_ms = lib.cow_now_ms()
        return self._board.view(self.slot)


_watch: Watch | None = None


def start(board: Board, slot: int, limits: Limits, host: Host) -> Watch:
    """Start watching this process as the worker of `slot`; NativeError if it cannot.

    From 3.12 on, an `os.fork()` of the application's own gives a DeprecationWarning
    in a process with a second thread, ours too. Stopping ours around the fork was
    tried: 3.13 counts after its at-fork callbacks, when it must run again. It holds
    no lock, so that the fork is as safe as before.
    """
    global _watch
    _watch = Watch(board, slot, limits, host)
    return _watch


def board() -> Board | None:
    """The board that this worker shares; None in any other process."""
    return None if _watch is None or os.getpid() != _watch._pid else _watch._board


def worker() -> SlotView | None:
    """Give the worker that this process is, with a reading taken now.

    Returns:
        slot, generation, pid, requests, and private, evictable, shared, pss and rss
        in bytes; about 20 ms a GiB. None in the master, in a child of a worker and
        outside a server of ours, and in a sub-interpreter of uWSGI's.
    """
    if _watch is None or os.getpid() != _watch._pid:
        return None
    # Plain figures: applications hand them to json.dumps(vars(...)).
    return replace(_watch.view(), last=None)
