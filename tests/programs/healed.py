"""Load a heap, move it, fork; the child reads, writes and heals, and compares.

Arguments: a seed, and how many rounds. Prints one line: bytes that reading all of it
copied, bytes that were the child's own after a heal, pages that a heal has changed,
and whether the child's objects are what they should be.
"""

from __future__ import annotations

import gc
import os
import random
import sys

from cowpreload import _core, freezing, healing
from cowpreload.settings import Settings

healing.begin(Settings(merge="self"))


class Item:
    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"name {number}"
        self.items = [number, str(number)]


HEAP = [Item(i) for i in range(40_000)]
LONG = [tuple(str(i + j) for j in range(90)) for i in range(3_000)]
freezing.freeze()
report = healing.move()
assert report.bytes > 10_000_000, report
assert not report.why_not, report


def read() -> int:
    """Look at every object."""
    seen = sum(each.number + len(each.name) + len(each.items) for each in HEAP)
    return seen + sum(len(text) for row in LONG for text in row)


def work(rounds: int, dice: random.Random) -> tuple[int, bool]:
    """Change, allocate, free and collect at random; heal after each."""
    wrong, young = 0, []
    expected = {}
    for _ in range(rounds):
        for _ in range(dice.randrange(200)):
            number = dice.randrange(len(HEAP))
            what = dice.randrange(5)
            if what == 0:
                HEAP[number].name = expected[number] = f"new {dice.random()}"
            elif what == 1:
                HEAP[number].items.append(number)
            elif what == 2:
                young.append(Item(number))
            elif what == 3 and young:
                young.pop(dice.randrange(len(young)))
            else:
                young.append(bytearray(dice.randrange(300_000)))  # type: ignore[arg-type]
        del young[: len(young) // 2]
        if dice.randrange(4) == 0:
            gc.collect()
        if dice.randrange(3) == 0:
            read()
        if dice.randrange(5) == 0:
            pid = os.fork()  # shares our copies
            if not pid:
                os._exit(read() < 0)
            os.waitpid(pid, 0)
        if dice.randrange(5) == 0:
            _core.trim()
        healed, changed = healing.checked()
        assert not healed.refused, healed
        wrong += changed
    right = all(HEAP[number].name == name for number, name in expected.items())
    return wrong, right and all(each.items[0] == each.number for each in HEAP)


if __name__ == "__main__":
    pid = os.fork()
    if pid:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    fresh = _core.take_reading().private
    read()
    copied = _core.take_reading().private - fresh
    healing.heal()
    own = _core.take_reading().private
    wrong, right = work(int(sys.argv[2]), random.Random(int(sys.argv[1])))
    print(copied, own, wrong, right, flush=True)
    os._exit(0)
