"""The collector of this interpreter, where CPython's and PyPy's differ.

Gives what the stages and hosts ask of it; holds no policy. PyPy's has neither
thresholds nor a permanent generation.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial

CAN_FREEZE = hasattr(gc, "freeze")
# A free-threaded build marks every object of the heap at each freeze, inherited ones
# too: in a worker that would copy all of them.
CAN_SETTLE = CAN_FREEZE and "t" not in sys.abiflags
WHY_NOT = "" if CAN_FREEZE else "the collector of this interpreter has no gc.freeze()"


def stop() -> Callable[[], None]:
    """Collect nothing from now on; give the function that undoes it.

    Not by gc.disable() where there is another way: libraries call gc.enable().
    """
    if not hasattr(gc, "set_threshold"):
        gc.disable()
        return gc.enable
    before = gc.get_threshold()
    gc.set_threshold(0)
    return partial(gc.set_threshold, *before)


def objects() -> int:
    """How many objects the collector lists.

    0 on PyPy, where listing 100,000 takes a second and up to 40 MB of the heap.
    """
    return len(gc.get_objects()) if CAN_FREEZE else 0


def unfreeze() -> None:
    """Let the interpreter end as it does without us: what is frozen is freed too."""
    if CAN_FREEZE:
        gc.unfreeze()
