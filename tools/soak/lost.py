"""What explains a lost request: the death of the very worker that had it. Pure.

A request names itself, and the application notes which worker begins it. So of most
losses it is known whose they are, and only that worker's death explains them. One that
no worker has begun (it was accepted, or read in part) is explained by the death of the
worker that had the connection before, or, on a fresh connection, of any worker just
then: `BY TIME`, counted apart. An answer that is wrong is never explained.

One loss is the host's own: a worker that was stopped for longer than `keepalive` closes
its kept connections as soon as it goes on, whether or not a request has arrived on them
(gunicorn 27 with threads and asgi: 6 of 6 such requests, with us and without).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.load import Loss

from soak.deaths import BY_US, Death, Stop

# Seconds from a death to where we know of it. Ours are noted before they are done; a
# limit's is logged at the master's next turn, within a second, but that a warm up anew
# can hold it for 5 s. Where no pid tells whose the request was, that is not waited for:
# in a third of all moments some worker has died less than 8 s ago.
OURS_LATE, SOON_LATE, LOGGED_LATE = 0.5, 2.0, 8.0
BY_TIME = "by time: "
AS_WITHOUT = "as without us: stopped for longer than keepalive"
KEEPALIVE = 2.0  # seconds, gunicorn's default


@dataclass(frozen=True)
class Lost:
    """A request without a whole answer.

    Attributes:
        number: as it names itself.
        loss: what the client has seen.
        by: who had answered on its connection before; 0: nobody,
        idle: seconds, how long before.
    """

    number: int
    loss: Loss
    by: int = 0
    idle: float = 0.0

    def __str__(self) -> str:
        loss = self.loss
        kept = f" on a connection of {self.by}, idle {self.idle:.1f} s" * loss.kept
        return (
            f"{self.number} {loss.text} ({loss.how}) after "
            f"{loss.ended - loss.begun:.1f} s{kept}"
        )


def explain(
    lost: Lost, deaths: Iterable[Death], stops: Iterable[Stop], begun: Mapping[int, int]
) -> str | None:
    """The cause of a loss, as deaths name it, or AS_WITHOUT; None: nothing explains it.

    Args:
        begun: the pid that has begun a request, by its number.
    """
    loss = lost.loss
    pid = begun.get(lost.number, lost.by)
    since = loss.begun - lost.idle - OURS_LATE
    for each in deaths:
        late = LOGGED_LATE if pid else SOON_LATE
        late = OURS_LATE if each.cause == BY_US else late
        if pid in (0, each.pid) and since <= each.at <= loss.ended + late:
            return each.cause if pid else BY_TIME + each.cause
    is_waiting = loss.kept and lost.number not in begun
    if is_waiting and any(_outlasted(lost, each) for each in stops):
        return AS_WITHOUT
    return None


def _outlasted(lost: Lost, stop: Stop) -> bool:
    """Whether keepalive was over, for its worker, before it could read the request."""
    loss = lost.loss
    since = max(stop.began, loss.begun - lost.idle)
    return (
        stop.pid == lost.by
        and loss.begun <= stop.ended <= loss.ended + OURS_LATE
        and loss.ended <= stop.ended + LOGGED_LATE
        and stop.ended - since >= KEEPALIVE - OURS_LATE
    )


def read_begun(text: str) -> dict[int, int]:
    """The application's notes: a number and a pid a line."""
    pairs = (line.split() for line in text.splitlines())
    return {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2}
