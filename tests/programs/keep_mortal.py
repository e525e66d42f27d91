"""What is freed in a child; the argument is freeze()'s."""

from __future__ import annotations

import os
import sys
import weakref

import cowpreload

happened: list[str] = []


class Watched:
    def __init__(self, name: str) -> None:
        self.name = name
        self.reference = weakref.finalize(self, happened.append, f"{name} called")

    def __del__(self) -> None:
        happened.append(f"{self.name} freed")


preloaded: Watched | None = Watched("preloaded")
kept: Watched | None = cowpreload.keep_mortal(Watched("kept"))
cowpreload.freeze(sys.argv[1])


def said(name: str) -> str:
    if {f"{name} freed", f"{name} called"} <= set(happened):
        return f"{name}: freed, weak reference called"
    return (
        f"{name}: half" if any(name in each for each in happened) else f"{name}: stays"
    )


child = os.fork()
if child == 0:
    kept = preloaded = None
    young: Watched | None = Watched("young")
    young = None
    late: Watched | None = cowpreload.keep_mortal(Watched("late"))
    late = None
    names = ("kept", "preloaded", "young", "late")
    print("\n".join(said(each) for each in names), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
os._exit(status)
