"""The machine, read once: what of the kernel the package needs, and what it may take.

Gives a frozen Machine. Reads /proc and /sys, changes nothing and never raises: in a
container without /sys, or with hidepid, what cannot be read is None or a text.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from cowpreload.capacity import Capacity, capacity, meminfo

_EXCLUSIVE = 1 << 56  # of a pagemap entry
_CAP_SYS_PTRACE = 1 << 19
_THP = "kernel/mm/transparent_hugepage/enabled"
_FIELDS = re.compile(r"^(\w+):", re.MULTILINE)


@dataclass(frozen=True)
class Machine:
    """What was read; sizes in bytes, None where it cannot be read.

    Attributes:
        kernel: system, release and architecture.
        rollup: the lines of smaps_rollup of this process.
        page_map: whether it shows which pages are this process's alone.
        huge_pages: always, madvise or never.
        ksm: 0, 1 or 2, as /sys/kernel/mm/ksm/run has it.
        swap_used: of swap_total.
        overcommit: 0, 1 or 2, as /proc/sys/vm/overcommit_memory has it.
        ptrace_scope: of Yama; None: there is none, which restricts nothing.
        may_trace: this user may look into every process.
        hidepid: the option of /proc's mount, or "".
        memfd: why no shared memory can be made, or "".
    """

    kernel: str
    capacity: Capacity
    memory: int
    rollup: tuple[str, ...] | None
    page_map: bool | None
    huge_pages: str | None
    ksm: str | None
    swap_total: int
    swap_used: int
    overcommit: str | None
    ptrace_scope: int | None
    may_trace: bool
    hidepid: str
    memfd: str


def read_machine(
    proc: Path = Path("/proc"), sys: Path = Path("/sys"), *, memfd: str | None = None
) -> Machine:
    """This one; or a recorded one, by its two folders and what memfd_create said."""
    rollup = _text(proc / "self/smaps_rollup")
    swap = meminfo("SwapTotal", proc)
    scope = _text(proc / "sys/kernel/yama/ptrace_scope")
    huge = re.search(r"\[(\w+)\]", _text(sys / _THP) or "")
    return Machine(
        kernel=f"{platform.system()} {_kernel(proc)} {platform.machine()}",
        capacity=capacity("self", proc, sys / "fs/cgroup"),
        memory=meminfo("MemTotal", proc),
        rollup=None if rollup is None else tuple(_FIELDS.findall(rollup)),
        page_map=_page_map(proc),
        huge_pages=huge[1] if huge else None,
        ksm=_text(sys / "kernel/mm/ksm/run"),
        swap_total=swap,
        swap_used=swap - meminfo("SwapFree", proc),
        overcommit=_text(proc / "sys/vm/overcommit_memory"),
        ptrace_scope=int(scope) if scope and scope.isdecimal() else None,
        may_trace=_may_trace(proc),
        hidepid=_hidepid(proc),
        memfd=_memfd() if memfd is None else memfd,
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _kernel(proc: Path) -> str:
    return _text(proc / "sys/kernel/osrelease") or platform.release()


def _page_map(proc: Path) -> bool | None:
    """A page that this process has just written is its alone; an old kernel, or one
    that hides it, does not say so."""
    page = os.sysconf("SC_PAGE_SIZE")
    written = bytearray(3 * page)
    address = _address(written) + page
    try:
        with open(proc / "self/pagemap", "rb", buffering=0) as file:
            file.seek(address // page * 8)
            entry = int.from_bytes(file.read(8), "little")
    except (OSError, ValueError):
        return None
    return bool(entry & _EXCLUSIVE)


def _address(written: bytearray) -> int:
    from cowpreload._core import ffi

    return int(ffi.cast("uintptr_t", ffi.from_buffer(written)))


def _may_trace(proc: Path) -> bool:
    found = re.search(
        r"^CapEff:\s*([0-9a-f]+)", _text(proc / "self/status") or "", re.MULTILINE
    )
    return bool(found and int(found[1], 16) & _CAP_SYS_PTRACE)


def _hidepid(proc: Path) -> str:
    """The last mount of /proc counts; hidepid=0 hides nothing."""
    found = ""
    for line in (_text(proc / "self/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[1:3] == ["/proc", "proc"]:
            options = fields[3].split(",")
            found = next((each for each in options if each.startswith("hidepid=")), "")
    return "" if found in ("hidepid=0", "hidepid=off") else found


def _memfd() -> str:
    try:
        os.close(os.memfd_create("cowpreload-doctor", os.MFD_CLOEXEC))
    except (OSError, AttributeError) as error:
        return getattr(error, "strerror", None) or "this Python has no memfd_create()"
    return ""
