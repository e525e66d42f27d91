"""Pids across pid namespaces: a server in a container counts its processes from 1.

What a board holds are pids as the server sees them; /proc shows them as this process
does. They differ only where this process looks into a container from outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cowpreload.texts import proc_lines


def _chain(pid: int) -> list[int]:
    """The pid in each namespace, from ours to the innermost; empty if it is gone."""
    try:
        lines = proc_lines(f"/proc/{pid}/status")
    except OSError:
        return []
    for line in lines:
        if line.startswith("NSpid:"):
            return [int(each) for each in line.split()[1:]]
    return [pid]  # before Linux 4.1


def is_inside(pid: int) -> bool:
    """Whether the process is in a pid namespace below ours."""
    return len(_chain(pid)) > 1


def own(pid: int) -> int:
    """The pid as the process itself sees it."""
    return (_chain(pid) or [pid])[-1]


def seen(pid: int, among: Iterable[int]) -> int:
    """Which of the processes `among` sees itself as `pid`; 0: none."""
    return next((each for each in among if own(each) == pid), 0)


def children(pid: int) -> list[int]:
    """The children of a process, as we see them."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue
    return found
