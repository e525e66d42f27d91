"""What the master does at its turns, on either host: learn from traffic, hint at more.

Takes what is known right before the first fork; gives what each turn is to call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from cowpreload.board import Board
from cowpreload.hosts.hint import Hint
from cowpreload.hosts.serving import Serving, as_another
from cowpreload.served import choose
from cowpreload.settings import Settings


class Turns(Protocol):
    """Learning, Hint, or both."""

    def turn(self, master: Serving) -> None:
        """Called about once a second; must not raise, and end no server."""


class _Each:
    """Several of them, one after the other."""

    def __init__(self, turns: Sequence[Turns]) -> None:
        self._turns = turns

    def turn(self, master: Serving) -> None:
        for each in self._turns:
            each.turn(master)


def begin(
    board: Board,
    settings: Settings,
    warm: Sequence[str],
    *,
    prefix: str = "",
    immortal: bool,
    uid: int,
    say: Callable[[str], object],
    off: Callable[[], Collection[str]] = tuple,
    why_not: str = "",
) -> Turns | None:
    """What to call; None: there is nothing to look at. Why nothing is learned is said.

    Args:
        board, settings: of this server.
        warm: the paths that were requested already.
        prefix: SCRIPT_NAME, as Learning has it.
        immortal: whether the heap is.
        uid: of the workers.
        say: logs a line.
        off: gives the paths that `warmup-file` switches off, as of now.
        why_not: why this host's master must not request pages; "": it may.
    """
    choose(board, settings)
    if settings.warmup and not settings.learns:
        return None  # who lists pages is told of nothing
    if settings.learns and settings.warmup_private == "on" and not settings.warmup_user:
        say(
            "cow: warmup-private=on: pages behind a login stay cold; set "
            "cow-warmup-user (Django), or list them, with cow-warmup-header"
        )
    # It never requests what visitors have chosen: to note more would be in vain.
    in_vain = settings.learns and as_another(uid)
    hint = None if in_vain else Hint(board, settings, warms_anew=False)
    if not settings.warmup_auto:
        return hint
    # It imports what few need.
    from cowpreload.hosts.learning import Learning, why_nothing

    why = why_nothing(immortal, uid) or why_not
    if why:
        if as_another(uid):  # to whom such a file says no more
            why += "; list pages, or run both as one user"
        elif settings.warmup_file is None:
            why += "; cow-warmup-file keeps it for the next start"
        say(f"cow: warmup=auto: nothing is warmed from traffic: {why}")
        return hint
    learning = Learning(board, settings, warm, prefix, off)
    return _Each([learning, Hint(board, settings, warms_anew=True)])
