"""End processes that a page of the application has left, and no stranger's.

Takes a pid; gives what ends its children. Others reap them at any time: their pids may
be other processes' by the time of a signal, descriptors of them are not.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial


def children(pid: int | str = "self") -> set[str]:
    """The living processes that this one, or another, has started."""
    found = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as listed:
                found.update(listed.read().split())
    return {each for each in found if lives(each)}


def held(parent: int) -> Iterator[Callable[[], None]]:
    """What ends a child of `parent` each, and never a process that has got its pid: its
    parent, or init, may reap it at any time."""
    for pid in map(int, children(parent)):
        try:
            fd = os.pidfd_open(pid)
        except (OSError, AttributeError):  # gone; or before Linux 5.3
            yield partial(os.kill, pid, signal.SIGKILL)
            continue
        if _about(pid)[1:2] == [b"%d" % parent]:
            yield partial(_end_held, fd)
        else:
            os.close(fd)


def _end_held(fd: int) -> None:
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    finally:
        os.close(fd)


def end_all(ends: Iterable[Callable[[], None]]) -> None:
    """Kill them; whoever is gone has ended by itself."""
    for end in ends:
        with contextlib.suppress(OSError):
            end()


def _about(pid: int | str) -> list[bytes]:
    """State, parent and more; [] if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as about:
            return about.read().rpartition(b")")[2].split()
    except OSError:
        return []


def lives(pid: str) -> bool:
    return _about(pid)[:1] not in ([], [b"Z"], [b"X"])
