"""What an extension of the stable ABI of 3.11 does to an immortal object.

Takes the folder of the compiled abi311; prints, a line each, how often references were
taken or given up, and whether the object lives and is immortal still.
"""

from __future__ import annotations

import os
import sys

import cowpreload
from cowpreload import _core

sys.path.insert(0, sys.argv[1])
import abi311  # type: ignore[import-not-found]

TOTAL = 1 << 33
HELD = 1 << 20
freed: list[str] = []


class Preloaded:
    """One object for each case."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        freed.append(self.name)


CASES = {name: Preloaded(name) for name in ("pairs", "released", "returned")}
ADDRESS = {name: id(each) for name, each in CASES.items()}
cowpreload.freeze()
IMMORTAL = _core.count_word(ADDRESS["pairs"])


def read(name: str) -> None:
    """Python's own use of the object, between the extension's calls."""
    held = [CASES[name]] * 100
    del held
    if freed or CASES[name].name != name:
        print(f"{name}: freed")
        sys.stdout.flush()
        os._exit(1)


def count(name: str) -> int:
    """The low half of the count, which decides."""
    return _core.count_word(ADDRESS[name]) & 0xFFFFFFFF


def pairs() -> None:
    """As many releases as takes, a million held at a time: what extensions do."""
    for _ in range(TOTAL // 2 // HELD):
        abi311.take(CASES["pairs"], HELD)
        read("pairs")
        abi311.release(CASES["pairs"], HELD)
    read("pairs")


def released() -> None:
    """References that Python did not count, given up: to the edge, and on there.

    Below 2^31 Python counts again, and each pair is even.
    """
    while count("released") > (1 << 31) + HELD:
        abi311.release(CASES["released"], HELD)
    for _ in range(32):
        abi311.get_and_release(CASES["released"], HELD)
        read("released")


def returned() -> None:
    """References of the extension that Python does not count down, up to the edge."""
    step = 1 << 20
    before = count("returned")
    while before <= count("returned") < 0xFFFFFFFF - step:
        abi311.take(CASES["returned"], step)
    abi311.take_and_return(CASES["returned"], step)
    read("returned")


for case in (pairs, released, returned):
    case()
    name = case.__name__
    state = "immortal" if count(name) >= 1 << 31 else "counted"
    print(f"{name}: alive {state}")
sys.stdout.flush()
os._exit(0)
