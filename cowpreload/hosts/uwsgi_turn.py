"""What uWSGI's master does beside its own tasks, at its turns and at its end.

plugin/turn.c calls `turn` about once a check interval, `ends` when a worker was told to
go, and `end` when the master is told to end or to reload, in the main interpreter and
thread, never in a worker. What is to be done is registered before the first fork.
Whatever raises is said once and not called again: it must end no server.
"""

from __future__ import annotations

from collections.abc import Callable

from cowpreload.hosts.uwsgi_apps import reported, say, say_traceback

Function = Callable[[], object]


class _Turns:
    """What is to be done, and how often."""

    def __init__(self) -> None:
        self.seconds = 1.0
        self.each: list[Function] = []
        self.last: list[Function] = []
        self.ends: list[Function] = []


_turns = _Turns()


def begin(seconds: float) -> None:
    """Before the first fork: a turn comes after so many seconds, or later."""
    _turns.seconds = seconds


def each_turn(function: Function) -> None:
    """Call it at each turn. It should be short: the master does nothing else then."""
    _turns.each.append(function)


def at_end(function: Function) -> None:
    """Call it once, when the master is told to end or to reload.

    The workers may still finish their requests then. It is not called where the master
    is killed.
    """
    _turns.last.append(function)


def when_told_to_go(function: Function) -> None:
    """Call it when a worker was told to go, and it is not yet taken off the board."""
    _turns.ends.append(function)


def _call(functions: list[Function]) -> None:
    for function in list(functions):
        try:
            function()
        except BaseException as error:  # SystemExit, and a page's CancelledError, too
            functions.remove(function)
            say_traceback(error)
            name = getattr(function, "__qualname__", type(function).__qualname__)
            say(f"cow: in the master: {name}() is not called again")


@reported
def turn() -> int:
    """One turn; milliseconds until the next, or 0: there is nothing to do any more."""
    _call(_turns.each)
    return max(1, round(_turns.seconds * 1000)) if _turns.each else 0


@reported
def ends() -> int | None:
    """A worker was told to go; None: there is nobody to say it."""
    _call(_turns.ends)
    return 0 if _turns.ends else None


@reported
def end() -> int:
    """The master is told to end, or to start itself anew."""
    _call(_turns.last)
    return 0
