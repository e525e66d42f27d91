"""Whether a server is in full order after a fault: nothing missing, nothing left over.

Takes a running server; gives what it holds (State), and waits until it holds no more
than before: all workers ready, no zombie, no right to recycle taken, descriptors and
memory of the master level.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from cowpreload.board import open_board
from cowpreload.errors import CowError
from harness.processes import PROC, stat, wait_until

# What allocators and logging take in passing; a leak of each recycling's passes it.
MEMORY_SLACK = 2 << 20


@dataclass(frozen=True)
class State:
    """What a master holds.

    Attributes:
        ready: workers that the board has as ready, and live.
        others: slots in any other state.
        tickets: rights to recycle that are taken.
        zombies: children of the master that nobody has waited for.
        descriptors, resident: of the master, the latter in bytes.
    """

    ready: int
    others: int
    tickets: int
    zombies: int
    descriptors: int
    resident: int


def all_children(pid: int) -> list[int]:
    """Zombies too."""
    found: list[int] = []
    for path in (PROC / str(pid) / "task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found += map(int, path.read_text().split())
    return found


def look(master: int) -> State:
    """The state of the server whose master this is, now."""
    board = open_board(master)
    try:
        states = [each.state for each in board]
        tickets = sum(1 for each in board.raw.tickets if each)
    finally:
        board.close()
    resident = int((PROC / str(master) / "statm").read_text().split()[1])
    return State(
        ready=states.count("ready"),
        others=len(states) - states.count("ready"),
        tickets=tickets,
        zombies=sum(stat(each)[:1] == ["Z"] for each in all_children(master)),
        descriptors=len(list((PROC / str(master) / "fd").iterdir())),
        resident=resident * os.sysconf("SC_PAGE_SIZE"),
    )


def faults(state: State, workers: int, before: State | None, tickets: int) -> list[str]:
    """What is not in order, a text each."""
    allowed = min(state.tickets, tickets)
    wanted = State(workers, 0, allowed, 0, state.descriptors, state.resident)
    found = [
        f"{name}={value}, wanted {getattr(wanted, name)}"
        for name, value in vars(state).items()
        if value != getattr(wanted, name)
    ]
    # It may have been counted while one worker's heartbeat file was not there.
    if before and state.descriptors > before.descriptors + 1:
        found.append(f"descriptors={state.descriptors}, before {before.descriptors}")
    if before and state.resident > before.resident + MEMORY_SLACK:
        mib = [each.resident / (1 << 20) for each in (state, before)]
        found.append("resident={:.1f} MiB, before {:.1f}".format(*mib))
    return found


def wait_order(
    master: int,
    workers: int,
    before: State | None = None,
    seconds: float = 60,
    tickets: int = 0,
) -> State:
    """Return the state once it is in order; TimeoutError with what is not.

    Where another master has taken over, `before` of the old one tells nothing: None.
    """
    found = [["never seen"]]
    seen: list[State] = []

    def in_order() -> bool:
        try:
            seen.append(look(master))
        except (CowError, OSError) as error:  # between two boards, or gone
            found.append([str(error)])
            return False
        found.append(faults(seen[-1], workers, before, tickets))
        return not found[-1]

    try:
        wait_until(in_order, seconds, "full order")
    except TimeoutError as error:
        held = _descriptors(master)
        raise TimeoutError(f"{error}: {'; '.join(found[-1])}; holds {held}") from None
    return seen[-1]


def _descriptors(pid: int) -> list[str]:
    try:
        return [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
