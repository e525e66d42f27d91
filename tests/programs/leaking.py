"""Fork a worker that reads all it has inherited, and heals, and leaks.

Prints what its watching thread is told of a verdict to recycle: 1, not yet; 0, now.
First when nothing was known; after a heal that found it within its limit; 10 s later,
when it has leaked and was healed in between unasked; after the heal that this asked
for. Nothing sleeps: the thread's clock is an argument.
"""

from __future__ import annotations

import os
import sys

from cowpreload import _core, freezing, healing
from cowpreload._core import ffi, lib
from cowpreload.settings import Settings

healing.begin(Settings(merge="self"))
HEAP = [[str(i), {i: str(i)}] for i in range(60_000)]
freezing.freeze(None)  # mortal: reading copies
assert healing.move().bytes > 10_000_000
MEGABYTE = 1024 * 1024


def heal_unasked() -> None:
    """Read until it pays: after some thousand faults, 3 % of the time."""
    while True:
        assert sum(len(each[0]) for each in HEAP)
        if healing.turn(idle=False):
            return


def tell() -> None:
    """Print the four answers."""
    heal_unasked()
    limit = _core.take_reading().private + 8 * MEGABYTE
    verdict = ffi.new("struct cow_verdict *")
    verdict.limit = limit
    asked = lib.cow_now_ms()
    verdict.over_since_ms = asked
    answers = [lib.cow_heal_first(verdict, asked)]
    assert healing.turn(idle=False), "what the thread wants was not done"
    healed = lib.cow_now_ms()
    answers.append(lib.cow_heal_first(verdict, healed))
    leaked = bytearray(os.urandom(MEGABYTE)) * 64
    heal_unasked()
    # The heal that was asked for speaks no longer; the other one never did.
    answers.append(lib.cow_heal_first(verdict, healed + 10_000))
    asked_again = healing.turn(idle=False) is not None
    answers.append(lib.cow_heal_first(verdict, lib.cow_now_ms()))
    print(*answers, asked_again, len(leaked) // MEGABYTE, flush=True)


if __name__ == "__main__":
    pid = os.fork()
    if pid:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    tell()
    os._exit(0)
