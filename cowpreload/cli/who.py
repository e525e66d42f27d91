"""Which process a command is about: one way to name it, for every command.

`PID` of a master or of one of its workers, `PID:SLOT` or `:SLOT` for the worker in a
slot (of the only server), a bare slot too where no process of a server has that pid, or
nothing where there is one server. Errors say what was found.
"""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Iterator

from cowpreload.board import Board, find_masters, of_other_versions, open_board
from cowpreload.errors import NativeError, NotFoundError

NONE_FOUND = (
    "pid: none found; start a server with a cow worker class or the uWSGI plugin, or "
    "run this as the server's user"
)
_FORM = re.compile(r"(\d+)?(?::(\d+))?")


def add_argument(parser: argparse.ArgumentParser, default: str) -> None:
    """The one argument; `default` says what is meant without it."""
    parser.add_argument(
        "who",
        nargs="?",
        default="",
        help=f"a master's or worker's PID, PID:SLOT, :SLOT or SLOT ({default})",
    )


def server(who: str) -> Board:
    """The board of the server that is meant.

    Raises:
        NotFoundError: there is none, or more than one.
    """
    return _find(who)[0]


def servers(who: str) -> Iterator[Board]:
    """The boards that are meant: of one server, or of all where `who` names none.

    Raises:
        NotFoundError: what is named is no server.
    """
    if who:
        yield server(who)
        return
    for pid in find_masters():
        with contextlib.suppress(NotFoundError, NativeError, OSError):  # it ended
            yield open_board(pid)


def other_versions() -> str:
    """What to say of servers that run with another version than this; "" if none."""
    pids = ", ".join(map(str, of_other_versions()))
    if not pids:
        return ""
    return (
        f"pid {pids}: runs with another version of cowpreload; use the cowpreload that "
        "it was started with, or start it anew"
    )


def worker(who: str) -> int:
    """The pid of the worker that is meant; of a server, of the one with most private
    memory. A pid of no server is given back: any process can be examined.

    Raises:
        NotFoundError: there is none, or more than one server.
    """
    pid, slot = _parse(who)
    if pid and not slot and not _holds_board(pid) and not _is_slot(pid):
        return pid
    board, slot = _find(who)
    if pid and not slot and pid != board.seen(board.master_pid):
        return pid
    workers = [each for each in board if each.pid and slot in (0, each.slot)]
    if not workers:
        raise NotFoundError(f"who={who or 'the only server'}: {_workers_of(board)}")
    return board.seen(max(workers, key=lambda each: each.private).pid)


def _parse(who: str) -> tuple[int, int]:
    found = _FORM.fullmatch(who)
    if found is None:
        raise NotFoundError(
            f"who={who}: names no process; write a pid, pid:slot, :slot or slot, as "
            "cowpreload status shows them"
        )
    return int(found[1] or 0), int(found[2] or 0)


def _find(who: str) -> tuple[Board, int]:
    """The board, and the slot that is named; 0: none is."""
    pid, slot = _parse(who)
    if not pid:
        return open_board(_only()), slot
    if slot or _holds_board(pid):
        return open_board(pid), slot
    if _is_slot(pid):
        return open_board(find_masters()[0]), pid
    raise NotFoundError(
        f"pid={pid}: holds no board, and is no slot of the only server; {_found()}"
    )


def _holds_board(pid: int) -> bool:
    try:
        open_board(pid)
    except NativeError:
        return True  # of another version: open_board says so
    except (NotFoundError, OSError):
        return False
    return True


def _is_slot(number: int) -> bool:
    """Whether the only server has a worker in that slot."""
    masters = find_masters()
    return len(masters) == 1 and any(
        each.slot == number and each.pid for each in open_board(masters[0])
    )


def _only() -> int:
    masters = find_masters()
    if not masters:
        raise NotFoundError(NONE_FOUND)
    if len(masters) > 1:
        raise NotFoundError(f"pid: {_found()}; name one of them, or a worker of it")
    return masters[0]


def _found() -> str:
    masters = find_masters()
    return f"masters {', '.join(map(str, masters))} found" if masters else "none found"


def _workers_of(board: Board) -> str:
    slots = ", ".join(str(each.slot) for each in board if each.pid)
    master = board.seen(board.master_pid) or board.master_pid
    if not slots:
        return f"master {master} has no worker yet; see cowpreload status"
    return f"master {master} has workers in the slots {slots}; name one of these"
