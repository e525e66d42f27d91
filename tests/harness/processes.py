"""Processes of a test: which live, whose children they are, and waiting for them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

PROC = Path("/proc")


def wait_until(
    condition: Callable[[], Result], seconds: float, what: str = "condition"
) -> Result:
    """The first true result of `condition`; TimeoutError after `seconds` without one.

    The deadline is what a loaded machine may need, not what a test expects.
    """
    end, pause = time.monotonic() + seconds, 0.01
    while not (result := condition()):
        if time.monotonic() >= end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)
        # Looking is a tenth of what a server's start costs, with a request each time.
        pause = min(pause * 1.2, 0.04)
    return result


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, ...; [] if gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    return stat(pid)[:1] not in ([], ["Z"], ["X"])


def children(pid: int) -> list[int]:
    """Its living children, by number: asked of the kernel, threads' children too."""
    found: list[int] = []
    for path in (PROC / str(pid) / "task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue  # the thread has ended
    return sorted(filter(alive, found))


def descendants(pid: int) -> list[int]:
    """Its living children, theirs, and so on; whole if none of them forks meanwhile."""
    found = children(pid)
    for child in found:  # which grows
        found += children(child)
    return found


def script(name: str) -> str:
    """The path of a script that is installed beside this interpreter."""
    return str(Path(sys.executable).with_name(name))
