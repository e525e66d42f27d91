"""Capacity: how much memory a process may take, by its control groups or the machine.

Takes a pid; gives the tightest limit between its control group and the topmost one
(version 1 and 2), or the machine's memory where none is set. For whatever says how
many workers fit: `doctor`, `try`, and the views of running servers ask here. Reads
/proc and /sys/fs/cgroup, writes nothing and never raises: what cannot be read limits
nothing.

In a container the path in /proc/PID/cgroup may be that of the host, which is not
mounted there: then what is mounted at the top is the container's own group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
# Version 1 writes "no limit" as the largest number of pages that a long can count.
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Capacity:
    """What a process and all that share its limit may take, in bytes.

    Attributes:
        limit: the tightest; 0: not even the machine's memory could be read.
        source: the file that says so, as /sys/fs/cgroup/a/memory.max, or `machine`.
        used: what is charged to that group now, file pages included; of the machine,
            what is not available to a new process.
        version: of the control groups that hold the process's memory; 0: none can be
            seen.
    """

    limit: int
    source: str
    used: int
    version: int

    @property
    def is_group(self) -> bool:
        """Whether a control group is tighter than the machine."""
        return self.source != "machine"


def capacity(
    pid: int | str = "self", proc: Path = _PROC, cgroups: Path = _CGROUPS
) -> Capacity:
    """Of process `pid`; the two folders are for recorded machines."""
    total, available = meminfo("MemTotal", proc), meminfo("MemAvailable", proc)
    folder, top, version = _group(pid, proc, cgroups)
    limit_file = "memory.max" if version == 2 else "memory.limit_in_bytes"
    used_file = "memory.current" if version == 2 else "memory.usage_in_bytes"
    best = Capacity(total, "machine", max(total - available, 0), version)
    for each in _upwards(folder, top) if version else ():
        limit = _number(each / limit_file)
        if 0 < limit < _UNLIMITED and (not best.limit or limit < best.limit):
            used = _number(each / used_file)
            best = Capacity(limit, str(each / limit_file), used, version)
    return best


def meminfo(name: str, proc: Path = _PROC) -> int:
    """A line of /proc/meminfo in bytes; 0 if there is none."""
    for line in _text(proc / "meminfo").splitlines():
        key, _, value = line.partition(":")
        if key == name and value.split():
            return _figure(value.split()[0]) * 1024
    return 0


def _group(pid: int | str, proc: Path, cgroups: Path) -> tuple[Path, Path, int]:
    """The folder of the process's memory group, the topmost one, and the version."""
    lines = _text(proc / str(pid) / "cgroup").split("\n")
    rows = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    for _, controllers, path in rows:
        if "memory" in controllers.split(","):
            top = cgroups / "memory"
            return _mounted(top, path), top, 1 if top.is_dir() else 0
    for _, controllers, path in rows:
        if controllers:
            continue
        # Beside version 1, version 2 is mounted one level deeper.
        alone = (cgroups / "cgroup.controllers").exists()
        top = cgroups if alone else cgroups / "unified"
        return _mounted(top, path), top, 2 if top.is_dir() else 0
    return cgroups, cgroups, 0


def _mounted(top: Path, path: str) -> Path:
    folder = top / path.lstrip("/")
    try:
        return folder if ".." not in folder.parts and folder.is_dir() else top
    except OSError:  # longer than a path may be
        return top


def _upwards(folder: Path, top: Path) -> Iterator[Path]:
    yield folder
    while folder != top and top in folder.parents:
        folder = folder.parent
        yield folder


def _number(path: Path) -> int:
    """0 for "max", and for what cannot be read."""
    return _figure(_text(path).strip())


def _figure(text: str) -> int:
    """0 for what is no figure that a kernel writes: Python refuses 5,000 digits."""
    return int(text) if text.isdecimal() and len(text) < 40 else 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
