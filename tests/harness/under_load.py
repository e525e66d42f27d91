"""One fault of a server under load: what the test does, what it cost, what came after.

Takes a running server whose workers leak, so that recycling goes on all the time; asks
it without a pause and checks every answer. Gives the row of the table of faults, and
waits until the server is in full order again (order.py).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.ledger import Cause, Ledger, Settled
from harness.load import Check, Load, is_sum
from harness.order import State, look, wait_order
from harness.processes import alive, wait_until
from harness.server import Server

# Each answer differs from its neighbours'; a worker has grown by 20M after seven.
GROWING = [f"/growsum?n={number}&mb=3" for number in range(1000, 1100)]
# With QUICK: what makes the requests above recycle a worker at once.
LEAKING = {"cow-max-growth": "20M", "cow-max-recycling": "2"}
# Hosts whose worker has one request at a time; what a kill of another can lose is
# bounded by the number of clients.
ONE_BY_ONE = ("sync", "uwsgi")


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        fault, host: what was done to whom.
        requests: in all; `on_kept` of them on a connection that had served another.
        lost: without a right answer; `unexplained` of them by nothing.
        explained: how many by what.
        kept_closed: kept connections that were closed before a byte of an answer; the
            client made the request again.
        recyclings: by us, in the meantime.
        pace: seconds that one recycling took, before the fault and after it; 0: not
            looked at.
    """

    fault: str
    host: str
    requests: int
    on_kept: int
    lost: int
    unexplained: int
    kept_closed: int
    recyclings: int
    explained: dict[str, int] = field(default_factory=dict)
    pace: tuple[float, float] = (0.0, 0.0)


class UnderLoad:
    """A server that is asked, and what a test does to it.

    Args:
        fault, host: as in Row.
        workers: that the server has when it is in order.
        paths, check: of the load; the default makes every worker leak.
        clients: side by side; `keepalive` of them keep their connections.
        pause: seconds before each request of a client.
        seconds: the load ends by itself then.

    Attributes:
        master: the pid of whoever is the master; a test changes it.
        before: what the master held when it was in order; None: not to be compared.
        ledger: what the test knows to lose requests.
        tickets: rights to recycle that may be left over, lapsed.
    """

    def __init__(
        self,
        fault: str,
        server: Server,
        host: str,
        *,
        workers: int,
        paths: Sequence[str] = GROWING,
        check: Check = is_sum,
        clients: int = 4,
        keepalive: int = 0,
        pause: float = 0.02,
        seconds: float = 280,
    ) -> None:
        self.fault, self.server, self.host = fault, server, host
        self.workers, self.clients = workers, clients
        self.master = server.pid
        self._first = wait_order(self.master, workers)
        self.before: State | None = self._first
        self.ledger = Ledger()
        self.settled = Settled({}, ())
        self._pace = [0.0, 0.0]
        self._is_over = False
        self.tickets = 0
        self._begun = time.monotonic()
        self._recycled = self._count()
        self.load = Load(
            server.port,
            paths,
            check=check,
            concurrency=clients,
            keepalive=keepalive,
            again=True,
            pause=pause,
            timeout=30,
            seconds=seconds,
        ).start()

    def _count(self) -> int:
        return self.server.log.count(" recycled ")

    @property
    def recyclings(self) -> int:
        """How many there were since the load began."""
        return self._count() - self._recycled

    def recycle(self, count: int, seconds: float = 60) -> float:
        """Wait for so many further recyclings; the seconds that one took."""
        start, first = time.monotonic(), self._count()
        wait_until(
            lambda: self._count() >= first + count or self.load.over,
            seconds,
            f"{count} recyclings",
        )
        assert not self.load.over, "the load was over before"
        return (time.monotonic() - start) / count

    def settle_in(self) -> None:
        """Note the usual pace, and the most that the master holds at any moment of it.

        gunicorn's master has four descriptors less while it forks.
        """
        seen = [look(self.master)]
        start = time.monotonic()
        for _ in range(2 * self.workers):
            self.recycle(1)
            seen.append(look(self.master))
        self._pace[0] = (time.monotonic() - start) / (2 * self.workers)
        self.before = replace(
            seen[-1],
            descriptors=max(each.descriptors for each in (*seen, self._first)),
            resident=max(each.resident for each in seen),
        )

    def explain(self, what: str, most: int, since: float, **more: object) -> None:
        """Something that began then and is over now loses so many requests at most."""
        cause = Cause(what, most, since, time.monotonic(), **more)  # type: ignore[arg-type]
        self.ledger.causes.append(cause)

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        """End a worker, with the requests that it has; return when it is dead."""
        since = time.monotonic()
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return  # it left before
        wait_until(lambda: not alive(pid), 30, "the end of the worker")
        most = 1 if self.host in ONE_BY_ONE else self.clients
        self.explain(signal.Signals(number).name, most, since)

    def stopped(self, what: str, since: float, ways: tuple[str, ...]) -> None:
        """The server has ended for good since then: all that comes later is lost so."""
        self.load.stop()
        self._is_over = True
        self.explain(what, 1_000_000, since, ways=ways)

    def recover(self) -> None:
        """Wait for the usual pace of recycling, then, without load, for full order.

        A right to recycle that nobody gives back holds a slot's worth of pace for ten
        seconds or more: two rounds of all workers meet it.
        """
        if self._is_over:
            return
        if self._pace[0]:
            self._pace[1] = self.recycle(2 * self.workers, 30 + 5 * self._pace[0])
        self.load.stop()
        wait_order(self.master, self.workers, self.before, tickets=self.tickets)

    def end(self) -> Row:
        """Stop the load; what it cost."""
        report = self.load.stop()
        self.settled = self.ledger.settle(report.losses)
        return Row(
            fault=self.fault,
            host=self.host,
            requests=report.requests,
            on_kept=report.on_kept,
            lost=len(report.losses),
            unexplained=len(self.settled.unexplained),
            kept_closed=report.kept_closed,
            recyclings=self.recyclings,
            explained=self.settled.explained,
            pace=(self._pace[0], self._pace[1]),
        )

    def unexplained(self) -> list[str]:
        """A line for each loss without a cause, in seconds since the load began."""
        return [
            f"{each.begun - self._begun:.3f} to {each.ended - self._begun:.3f}: "
            f"{each.how}{' on a kept connection' if each.kept else ''}, {each.text}"
            for each in self.settled.unexplained
        ]

    def known(self) -> list[str]:
        """A line for each cause, likewise."""
        return [
            f"{each.since - self._begun:.3f} to {each.until - self._begun:.3f}: "
            f"{each.what}, at most {each.most}"
            for each in self.ledger.causes
        ]
