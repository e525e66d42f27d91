"""Merge: offer the inherited heap to the kernel, which merges pages that are equal.

Takes this process's memory right before the first fork, after the seal; gives a
MergeReport. Where reading copies pages - before CPython 3.12, and on PyPy - counts and
marks are soon what they were, and the copies equal: the kernel's merging (KSM) makes
one page of them again. It must be switched on by root, for the whole machine; until it
is, to offer costs nothing and gives nothing. Must not write to /sys.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cowpreload import _core
from cowpreload.errors import NativeError
from cowpreload.units import format_size

KSM = Path("/sys/kernel/mm/ksm")


@dataclass(frozen=True)
class MergeReport:
    """What was offered to the kernel for merging.

    Attributes:
        bytes: of address space; 0: nothing.
        why_not: why nothing of it is merged now; "" if it is.
    """

    bytes: int = 0
    why_not: str = ""

    def line(self) -> str:
        """One log line, without a newline."""
        if not self.bytes:
            return f"cow: merge=off: {self.why_not}"
        then = f": nothing is merged: {self.why_not}" if self.why_not else ""
        return f"cow: merge=kernel offered={format_size(self.bytes)}{then}"


def offer(ksm: Path = KSM) -> MergeReport:
    """Let the kernel merge what this process has allocated so far.

    Processes that are forked later have offered it, too; what they allocate on their
    own is not offered. Never raises.
    """
    try:
        offered = _core.offer_to_merge()
    except NativeError as error:
        return MergeReport(why_not=str(error))
    return MergeReport(offered, why_not=_why_not(ksm))


def _why_not(ksm: Path) -> str:
    """Why the kernel merges nothing of it now; "" if it does, or does not tell."""
    try:
        run = (ksm / "run").read_text().strip()
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        return "this kernel has no KSM" if gone else ""
    if run == "1":
        return ""
    return f"{ksm / 'run'} is {run}; as root, on the host: echo 1 > {ksm / 'run'}"
