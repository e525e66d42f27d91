"""Ask for one worker to be replaced, as its master would: by a word on the board.

Its own watching thread sees it, takes a ticket and tells the host to let it go after
its requests: no signal is sent, none can be lost, and `cow-max-recycling` holds.
"""

from __future__ import annotations

from contextlib import closing

from cowpreload._core import LEAVING
from cowpreload.board import open_board
from cowpreload.errors import CowError


def renew(pid: int, slot: int, generation: int) -> str:
    """Ask it; what has come of that, as one line.

    Args:
        pid: a process that holds the board: the master, or the worker itself.
        slot, generation: of the worker; another in its place is left alone.
    """
    try:
        board = open_board(pid, writable=True)
    except (CowError, OSError) as error:
        return f"worker {slot} cannot be asked: {error}"
    with closing(board):
        life = board.raw.slot[slot - 1].life
        if life.generation != generation:
            return f"worker {slot} has been replaced already"
        if life.state == LEAVING:
            return f"worker {slot} is leaving already"
        life.renew = 1
    return f"worker {slot} is asked to leave after its requests"
