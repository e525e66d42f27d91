"""Have the user of a warm up: in a child first, which can be killed.

Takes the user's name; gives what a Cookie header says, as warmup_user.py does. A
database that answers nothing (packets are dropped: 130 s to connect, a read for ever)
holds its caller in C, where Python's alarm does not reach: a master that serves would
obey no signal, one that starts would not start. What the child does not bring to its
end in time, the master does not try.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from cowpreload.candidates import Answered, Candidate
from cowpreload.closing import close_all
from cowpreload.forks import Forks
from cowpreload.freezing import thaw
from cowpreload.hosts import children, closings
from cowpreload.warmup_user import WITHOUT, make_and_remove, signed_in, why

# What it may take at a start, in seconds; the warm up goes on without.
SECONDS = 5.0


@contextlib.contextmanager
def signed_in_after_trial(
    name: str | None,
    say: Callable[[str], None],
    seconds: float,
    forks: Forks,
    stopped: Callable[[], bool] = children.never,
) -> Iterator[str]:
    """Around a warm up: `sessionid=...` of the user; "" without one.

    Args:
        name: of the user; None: nobody's.
        say: logs a line.
        seconds: that the database may take to make a session and to remove it.
        forks, stopped: of the host, as Automatic has them.
    """
    if name:
        fault = _fault(name, say, seconds, forks, stopped)
        if fault:
            say(f"cow: warmup-user={name}: {fault}; {WITHOUT}")
            name = None
    with signed_in(name, say, seconds) as cookie:
        yield cookie


def _fault(
    name: str,
    say: Callable[[str], None],
    seconds: float,
    forks: Forks,
    stopped: Callable[[], bool],
) -> str:
    """Why no session can be had, from a child that made one and removed it, or ""."""
    # Only who has a user needs them.
    from cowpreload.trial import Limits, Trial
    from cowpreload.trial_child import Work

    def attempt(candidates: Iterable[Candidate], answered: Answered) -> None:
        for each in candidates:
            fault = None
            try:
                make_and_remove(name)
            except BaseException as error:
                fault = error
            if not answered(each, 0, fault):
                return

    def why_not(_: int, error: BaseException | None) -> str:
        return "" if error is None else why(error)

    # Callbacks are not called: the application asked for them after the warm up, and
    # the child touches what Django has alone.
    thaw()
    for line in closings.close(closings.bounded(seconds, say)):
        say(line)
    close, whole = close_all, 4 * seconds
    work = Work(children.begin, attempt, why_not, close, list, 2 * whole, close)
    with children.forking():
        trial = Trial(work, Limits(seconds, whole), stopped, forks)
        trial.over([Candidate("a session")])
    return trial.tried[0].dropped
