"""A memory group for the processes of one test: root, and control groups of version 1.

What runs in it is the test's own to end.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.processes import wait_until

_ROOT = Path("/sys/fs/cgroup")
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Group:
    """Its folder, and that of this process before."""

    path: Path
    ours: Path

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """What this process starts meanwhile is in the group."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (self.ours / "cgroup.procs").write_text(str(os.getpid()))

    def kills(self) -> int:
        """Processes that the kernel has killed for memory."""
        text = (self.path / "memory.oom_control").read_text()
        return sum(
            int(line.split()[1])
            for line in text.splitlines()
            if line.startswith("oom_kill ")
        )


def _ours() -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _ROOT / "memory" / path.lstrip("/")
    raise OSError("no memory group of version 1")


@contextlib.contextmanager
def memory_group(limit: int) -> Iterator[Group]:
    """A group of `limit` bytes; the test is skipped where none can be made."""
    try:
        ours = _ours()
        path = ours / f"cowpreload-test-{os.getpid()}-{next(_NUMBERS)}"
        path.mkdir()
        (path / "memory.limit_in_bytes").write_text(str(limit))
    except OSError as error:
        pytest.skip(f"no memory group can be made here: {error}")
    try:
        yield Group(path, ours)
    finally:
        wait_until(lambda: _removed(path), 20, "the group to be empty")


def _removed(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.rmdir()
    return not path.exists()
