"""The checks: pure functions from a record to a fact, in tables.

Takes a Machine, an Interpreter or Servers; gives a Part. Each function looks at one
thing and says one fact, with what to do where it is not as it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from cowpreload.diagnosis import Fact, Part, bad, ok, warn
from cowpreload.doctor.interpreter import Interpreter
from cowpreload.doctor.machine import Machine
from cowpreload.units import format_size

Record = TypeVar("Record")

_NEEDED = {"Private_Dirty", "Private_Clean", "Pss", "SwapPss"}
_ATTACH, _ADMIN, _NOBODY = 1, 2, 3  # of Yama's ptrace_scope


def part(
    title: str, checks: Sequence[Callable[[Record], Fact]], record: Record
) -> Part:
    """What a table of checks says of a record."""
    return Part(title, tuple(check(record) for check in checks))


# ---- machine -----------------------------------------------------------------


def _kernel(machine: Machine) -> Fact:
    if not machine.kernel.startswith("Linux "):
        return bad("kernel", f"{machine.kernel}: readings and limits need Linux")
    return ok("kernel", machine.kernel)


def _reading(machine: Machine) -> Fact:
    if machine.rollup is None:
        return warn(
            "smaps_rollup",
            "cannot be read; private memory comes from smaps, which takes longer, and "
            "where that cannot be read either, limits do not act",
        )
    missing = sorted(_NEEDED - set(machine.rollup))
    if missing:
        return warn("smaps_rollup", f"has no {', '.join(missing)}: swap is not counted")
    return ok("smaps_rollup", "private memory can be read; limits act")


def _page_map(machine: Machine) -> Fact:
    if machine.page_map is None:
        return warn("pagemap", "cannot be read: `cowpreload why` cannot name pages")
    if not machine.page_map:
        return warn(
            "pagemap", "does not tell which pages are private: `cowpreload why` cannot"
        )
    return ok("pagemap", "tells which pages are private")


def _tracing(machine: Machine) -> Fact:
    scope = machine.ptrace_scope
    if scope == _NOBODY:
        text = "3: nobody may read another process: no `cowpreload why`, no status"
        return warn("ptrace scope", text)
    if machine.may_trace or not scope:
        whose = "any process" if machine.may_trace else "processes of this user"
        shown = "not set" if scope is None else str(scope)
        return ok("ptrace scope", f"{shown}: `cowpreload why` may read {whose}")
    return warn(
        "ptrace scope",
        f"{scope}: `cowpreload why` and status of a server need root, or "
        "kernel.yama.ptrace_scope = 0",
    )


def _hidden(machine: Machine) -> Fact:
    if not machine.hidepid or machine.may_trace:
        return ok("/proc", "shows the servers of this user")
    return warn(
        "/proc",
        f"{machine.hidepid}: shows nobody else's processes; ask about a server as its "
        "user",
    )


def _memfd(machine: Machine) -> Fact:
    if machine.memfd:
        text = f"no shared memory with a name ({machine.memfd}): limits act, and "
        return warn("memfd", f"{text}`cowpreload status` cannot see a server")
    return ok("memfd", "the board can be made, and seen by `cowpreload status`")


def _huge_pages(machine: Machine) -> Fact:
    if machine.huge_pages is None:
        return ok("huge pages", "not told by this system")
    if machine.huge_pages == "always":
        return warn(
            "huge pages",
            "always: a fault in fresh memory may take 2 MiB at once, which a worker "
            "has for itself; madvise keeps its growth small",
        )
    return ok("huge pages", f"{machine.huge_pages}: only who asks gets them")


def _ksm(machine: Machine) -> Fact:
    if machine.ksm is None:
        return ok("ksm", "this kernel does not merge equal pages, or does not tell")
    if machine.ksm == "1":
        return ok("ksm", "on: cow-merge = kernel has it merge what reading has copied")
    return ok("ksm", "off: cow-merge = kernel would give nothing (docs/merging.md)")


def _swap(machine: Machine) -> Fact:
    if not machine.swap_total:
        return ok("swap", "none")
    used, total = format_size(machine.swap_used), format_size(machine.swap_total)
    if machine.swap_used > machine.swap_total // 10:
        return warn(
            "swap",
            f"{used} of {total} in use: memory is short already; what a worker has "
            "there counts as private",
        )
    return ok("swap", f"{used} of {total} in use")


def _limit(machine: Machine) -> Fact:
    found = machine.capacity
    if not found.limit:
        return warn("memory limit", "neither a control group's nor the machine's known")
    if not found.is_group:
        groups = f"no control group (v{found.version}) is tighter"
        if not found.version:
            groups = "control groups cannot be read"
        return ok(
            "memory limit", f"{format_size(found.limit)} of the machine; {groups}"
        )
    left = max(found.limit - found.used, 0)
    text = (
        f"{format_size(found.limit)} by {found.source} (v{found.version}), "
        f"{format_size(left)} free"
    )
    if left < found.limit // 10:
        return warn("memory limit", f"{text}: the kernel may kill at any fork")
    return ok("memory limit", text)


def _overcommit(machine: Machine) -> Fact:
    if machine.overcommit == "2":
        return warn(
            "overcommit",
            "vm.overcommit_memory = 2: each fork is charged the whole heap of the "
            "master, and fails where CommitLimit is reached",
        )
    return ok("overcommit", "a fork is charged what it copies, not what it inherits")


MACHINE: tuple[Callable[[Machine], Fact], ...] = (
    _kernel,
    _reading,
    _page_map,
    _tracing,
    _hidden,
    _memfd,
    _huge_pages,
    _ksm,
    _swap,
    _limit,
    _overcommit,
)


# ---- interpreter -------------------------------------------------------------


def _version(found: Interpreter) -> Fact:
    kind = ", free-threaded" if found.free_threaded else ""
    if found.debug_build:
        text = "a debug build: objects are larger, everything is slower; serve with a "
        return bad("python", f"{found.name}{kind}: {text}release build")
    return ok("python", f"{found.name}{kind}")


def _freeze(found: Interpreter) -> Fact:
    if found.freeze_why_not:
        return warn("freeze", found.freeze_why_not)
    return ok("freeze", "the collector leaves the inherited heap alone")


def _immortal(found: Interpreter) -> Fact:
    if found.immortal_why_not:
        return warn(
            "immortal",
            f"{found.immortal_why_not}: whoever reads an object copies its page",
        )
    return ok("immortal", "reading an inherited object copies nothing")


def _hot_code(found: Interpreter) -> Fact:
    if found.immortal_why_not:
        return ok("hot code", "stays where it is, as the heap stays mortal")
    return ok("hot code", "what the warm-up runs is laid side by side")


def _why(found: Interpreter) -> Fact:
    if found.why_why_not:
        return warn("why", f"page maps alone: {found.why_why_not}")
    return ok("why", "`cowpreload why` can name objects")


def _debugging(found: Interpreter) -> Fact:
    if found.debugs_malloc:
        what = f"PYTHONMALLOC={found.malloc}" if found.malloc else "-X dev"
        return warn(
            "debug hooks",
            f"{what} is on: each block is larger by 24 bytes or more, and holes are "
            "not filled; leave it off where you serve",
        )
    if found.tracemalloc:
        return warn(
            "debug hooks",
            f"tracemalloc keeps {found.tracemalloc} frames of each allocation: leave "
            "PYTHONTRACEMALLOC off where you serve",
        )
    return ok("debug hooks", "none: no -X dev, PYTHONMALLOC=debug or tracemalloc")


def _allocator(found: Interpreter) -> Fact:
    if found.malloc == "malloc":
        return ok("allocator", "PYTHONMALLOC=malloc: the C library's for all")
    names = ("jemalloc", "tcmalloc", "mimalloc")
    other = next((each for each in names if each in found.preloaded), "")
    if other:
        return ok("allocator", f"{other} by LD_PRELOAD: holes in its heap stay")
    return ok("allocator", "pymalloc, and the C library's")


INTERPRETER: tuple[Callable[[Interpreter], Fact], ...] = (
    _version,
    _freeze,
    _immortal,
    _hot_code,
    _why,
    _debugging,
    _allocator,
)
