"""One process pair: what is loaded before the fork, what runs after it.

Takes a regime and the file of records; gives control back in the child alone. The
parent only waits, and leaves without finalizing: a heap of immortal objects must not
be torn down. Both regimes go through the same lines; `freeze` is the difference.
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import sys
import warnings
from typing import Any

import cowpreload

REGIMES = ("plain", "frozen")

# Reached from this module alone: nothing else can have made it immortal.
_witness: list[str] = ["a list that was there before the fork"]


class Records:
    """JSON lines, each written by one system call: a crash loses none before it."""

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._descriptor = os.open(path, flags, 0o644)

    def write(self, **record: Any) -> None:
        os.write(self._descriptor, json.dumps(record, default=str).encode() + b"\n")


def counts_stand_still() -> bool:
    """Whether the inherited witness is read without its count moving."""
    before = sys.getrefcount(_witness)
    more = [_witness] * 100
    return sys.getrefcount(_witness) == before and len(more) == 100


def fork_here(regime: str, records: Records) -> None:
    """Freeze if the regime says so, and fork; returns in the child, and only there."""
    if regime not in REGIMES:
        raise ValueError(f"regime={regime!r}: unknown; give one of {REGIMES}")
    if regime == "frozen":
        report = cowpreload.freeze()
        records.write(event="frozen", report=dataclasses.asdict(report))
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        records.write(
            event="forked",
            pid=os.getpid(),
            immortal=counts_stand_still(),
            regime=regime,
        )
        return
    _, status = os.waitpid(child, 0)
    records.write(event="ended", code=os.waitstatus_to_exitcode(status))
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def leave(records: Records) -> None:
    """End the child as a worker ends: nothing is finalized."""
    records.write(event="done")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
