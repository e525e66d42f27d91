"""Objects that only C code holds: say of each whether it has become immortal.

Takes the folder of the compiled holder.c, and "held_by" to use that too. Prints what
is refused, the faults, and lines "name: immortal" or "name: mortal".
"""

from __future__ import annotations

import os
import sys

import cowpreload

sys.path.insert(0, sys.argv[1])
from holder import Holder, Pair  # type: ignore[import-not-found]


def text(name: str) -> str:
    """A string that nobody has interned, with an address of its own."""
    return "".join([name, "!"])


def hidden(*names: str) -> Holder:
    return Holder([text(name) for name in names])


listed, called, generated, grown = map(hidden, ("a", "b", "c", "d"))
decorated, unknown = map(hidden, ("e", "f"))
pair = Pair()
pair.first, pair.second = text("first"), (text("second"), Pair())
pair.second[1].first = text("nested")
half = Pair()
half.second = text("half")


def tree(depth: int) -> Holder:
    """A holder in a holder: none of them is in a list of Python's."""
    return Holder([text(f"leaf {depth}"), *([tree(depth - 1)] if depth else [])])


growing: list[object] = []
cowpreload.immortal_too(listed.items())
cowpreload.immortal_too(called.items)
cowpreload.immortal_too(each for each in generated.items())
cowpreload.immortal_too(growing)
growing.extend(grown.items())


@cowpreload.immortal_too
def of_a_tuple() -> list[tuple[str, object]]:
    return [("in a tuple that is made for the answer", decorated.items()[0])]


@cowpreload.immortal_too
def failing() -> list[object]:
    raise LookupError("not there")


try:
    cowpreload.immortal_too(3)  # type: ignore[type-var]
except TypeError as error:
    print(f"refused: {error}")

told = sys.argv[2:] == ["held_by"]
if told:
    trees = [tree(50)]
    cowpreload.held_by(Holder, lambda holder: holder.items())
    cowpreload.held_by(Pair, lambda made: [1 / 0])
report = cowpreload.freeze()
print(f"fault: {report.immortal.fault}")
assert cowpreload.immortal_too(unknown.items) == unknown.items  # for the next freeze


def said(name: str, item: object) -> None:
    print(f"{name}: {'immortal' if sys.getrefcount(item) > 1 << 29 else 'mortal'}")


said("a list", listed.items()[0])
said("a function", called.items()[0])
said("a generator", generated.items()[0])
said("a list that grew until the freeze", grown.items()[0])
said("a decorated function", decorated.items()[0])
said("nobody told", unknown.items()[0])
said("a declared attribute", pair.first)
said("a tuple in one", pair.second[0])
said("an object in the tuple", pair.second[1].first)
said("beside an empty one", half.second)
if told:
    at = trees[0]
    while len(at.items()) > 1:
        at = at.items()[1]
    said("the last of fifty", at.items()[0])
cowpreload.freeze()
said("after the second freeze", unknown.items()[0])
sys.stdout.flush()
os._exit(0)
