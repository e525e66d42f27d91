"""How a host forks the child of a trial; frozen, and composed by the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(pid: int) -> None:
    """Of a host that has nothing to do there."""


@dataclass(frozen=True)
class Forks:
    """Three functions.

    Attributes:
        begin: in the child, before anything else of the host's and the application's,
            with the pid of its master. A master that is killed must not leave the
            child: it holds the listening sockets.
        reaped: in the master, with the pid of a child that is gone.
        fork: as os.fork(); None: that one.
    """

    begin: Callable[[int], object]
    reaped: Callable[[int], object] = _nothing
    fork: Callable[[], int] | None = None
