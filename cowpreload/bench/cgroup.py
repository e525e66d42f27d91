"""A control group for one server: its peak of memory, and a cap on it.

Takes a limit in bytes; gives a command prefix that starts a process inside. Version 1
and version 2 of the kernel's interface; where neither can be used (no root, a read-only
mount), `available` says why and the scenario goes on without.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cowpreload.bench.server import wait_until

ROOT = Path("/sys/fs/cgroup")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Cgroup:
    """One group.

    Attributes:
        path: its folder.
        second: whether it is of version 2.
    """

    path: Path
    second: bool

    @property
    def prefix(self) -> tuple[str, ...]:
        """Runs what follows inside: a shell that joins the group and becomes it."""
        procs = str(self.path / "cgroup.procs")
        return ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', procs)

    def cap(self, limit: int) -> None:
        """Let the kernel reclaim, and then kill, above `limit` bytes."""
        names = ("memory.max",) if self.second else ("memory.limit_in_bytes",)
        for name in names:
            (self.path / name).write_text(str(limit))

    def peak(self) -> int:
        """The most memory that the group ever had, in bytes, file pages included."""
        name = "memory.peak" if self.second else "memory.max_usage_in_bytes"
        return int((self.path / name).read_text())

    def kills(self) -> int:
        """Processes of the group that the kernel killed for memory."""
        name = "memory.events" if self.second else "memory.oom_control"
        for line in (self.path / name).read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0


def _parent() -> tuple[Path, bool]:
    """Where this process may make groups, and whether that is version 2.

    Raises:
        OSError: nowhere.
    """
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return ROOT / "memory" / path.lstrip("/"), False
    for line in lines:
        if not line.startswith("0::"):
            continue
        own = ROOT / line.split(":", 2)[2].lstrip("/")
        # Beside us, not below: a group of version 2 holds processes or groups.
        for parent in (own, own.parent):
            control = parent / "cgroup.subtree_control"
            if control.exists() and "memory" in control.read_text().split():
                return parent, True
    raise OSError("no memory controller of control groups is mounted here")


def available() -> str:
    """Why no group can be made; nothing if one can."""
    try:
        with group():
            return ""
    except OSError as error:
        return f"no cgroup can be made here ({error.strerror or error})"


@contextlib.contextmanager
def group() -> Iterator[Cgroup]:
    """A fresh group, removed at last; its processes must have ended by then.

    Raises:
        OSError: it cannot be made.
    """
    parent, second = _parent()
    path = parent / f"cowpreload-bench-{os.getpid()}-{next(_numbers)}"
    path.mkdir()
    try:
        made = Cgroup(path, second)
        made.peak()
        yield made
    finally:
        # The kernel needs a moment after the last process was reaped.
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: _removed(path), 10, "the group to be empty")


def _removed(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.rmdir()
    return not path.exists()
