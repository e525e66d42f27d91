"""Acts of the plan, done to a server: kills, stops, reloads, workers more and fewer.

Takes an act; does it at once, or what ends it later (`then`). An act that finds no
worker is `idle`, and counted so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable

from soak import mix
from soak.clients import Clients
from soak.deaths import Deaths
from soak.hosts import RUNAWAY, TIMEOUT, Started
from soak.mix import Act
from soak.samples import Samples

Later = Callable[[float, Callable[[], None]], None]
LIMITS = ("24M", "30M", "20M")
MISTAKE = "24X"
IMPOSSIBLE = "30M"  # less than fresh workers take
IMPOSSIBLE_FOR = 12.0  # seconds
STALLED = TIMEOUT + 8.0


class Faults:
    """What is done to one server.

    Attributes:
        done: how often, by kind; what found nothing to do is `KIND: idle`.
        answered: runaways that had an answer, which the hard limit should have ended.
    """

    def __init__(
        self,
        started: Started,
        samples: Samples,
        clients: Clients,
        deaths: Deaths,
        later: Later,
    ) -> None:
        self._started, self._samples = started, samples
        self._clients, self._deaths, self._later = clients, deaths, later
        self._requests: list[threading.Thread] = []
        self._more = 0
        self.stopped: dict[int, float] = {}  # since when
        self.done: Counter[str] = Counter()
        self.answered = 0

    def do(self, act: Act) -> None:
        """Do it."""
        is_done = {
            mix.KILL: self._kill,
            mix.RUNAWAY: self._run_away,
            mix.STOP: self._stop,
            mix.STALL: self._stall,
            mix.HUP: self._hup,
            mix.CHANGE: self._change,
            mix.MISTAKE: self._mistake,
            mix.IMPOSSIBLE: self._starve,
            mix.CHAIN: self._chain,
            mix.MORE: self._one_more,
            mix.FEWER: self._one_fewer,
        }[act.kind](act)
        self.done[act.kind if is_done else f"{act.kind}: idle"] += 1

    def end(self) -> None:
        """Let everything go on that was stopped, and wait for runaways."""
        for pid in list(self.stopped):
            self._go_on(pid)
        for each in self._requests:
            each.join()

    def _worker(self, act: Act) -> int:
        """One that is not stopped; 0: there is none."""
        pids = [pid for pid in self._samples.workers() if pid not in self.stopped]
        return pids[int(act.pick * len(pids))] if pids else 0

    def _kill(self, act: Act) -> bool:
        pid = self._worker(act)
        if pid:
            self._deaths.kills(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(pid)

    def _run_away(self, act: Act) -> bool:
        def request() -> None:
            self.answered += self._clients.ask_once(f"/runaway?n={RUNAWAY}")

        self._requests.append(threading.Thread(target=request))
        self._requests[-1].start()
        return True

    def _stop(self, act: Act) -> bool:
        return self._stop_for(act, 1.0 + 3.0 * act.amount) > 0

    def _stall(self, act: Act) -> bool:
        pid = self._stop_for(act, STALLED)
        if pid:
            self._deaths.stalls(pid)
        return bool(pid)

    def _stop_for(self, act: Act, seconds: float) -> int:
        pid = self._worker(act)
        if pid:
            self.stopped[pid] = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
            self._later(time.monotonic() + seconds, lambda: self._go_on(pid))
        return pid

    def _go_on(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        self._deaths.goes_on(pid, self.stopped.pop(pid))

    def _hup(self, act: Act) -> bool:
        self._started.server.signal(signal.SIGHUP)
        return True

    def _change(self, act: Act) -> bool:
        self._started.configure(LIMITS[int(act.amount * len(LIMITS))])
        return self._hup(act)

    def _mistake(self, act: Act) -> bool:
        """A reload that has to keep what was; the next one reads a right file."""
        self._started.configure(MISTAKE)
        self._hup(act)
        self._later(time.monotonic() + 5.0, self._started.configure)
        return True

    def _starve(self, act: Act) -> bool:
        """A budget that recycling cannot keep to, for a while."""
        self._started.configure(budget=IMPOSSIBLE)

        def relent() -> None:
            self._started.configure()
            self._hup(act)

        self._later(time.monotonic() + IMPOSSIBLE_FOR, relent)
        return self._hup(act)

    def _chain(self, act: Act) -> bool:
        return self._tell("c")

    def _one_more(self, act: Act) -> bool:
        if self._more >= 2 or not self._resize("+", signal.SIGTTIN):
            return False
        self._more += 1
        return True

    def _one_fewer(self, act: Act) -> bool:
        if self._more <= -2 or not self._resize("-", signal.SIGTTOU):
            return False
        self._more -= 1
        return True

    def _resize(self, letter: str, number: int) -> bool:
        if self._started.fifo.exists():
            return self._tell(letter)
        self._started.server.signal(number)
        return True

    def _tell(self, letter: str) -> bool:
        try:
            self._started.tell(letter)
        except OSError:
            return False  # it executes itself anew just now
        return True
