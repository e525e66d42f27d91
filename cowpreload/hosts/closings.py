"""Close anew, unasked, what children must not share; each kind within a time.

Takes Bounds; gives lines on the faults. A callback that flushes a client may wait for a
thread that ended at the first call of it: what does not come back is said, given up,
and may be open. Nothing here ends a master, whether it serves or starts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cowpreload import callbacks, closing
from cowpreload.deadline import Bounds
from cowpreload.errors import WarmupError

_WAITS = "it waits for what its first call ended: let it return when called again"
_OPEN = "what is still open its children share: close it in a before_fork callback"


def bounded(seconds: float, say: Callable[[str], None]) -> Bounds:
    """For the two below: it ends no process, not even one that it cannot interrupt."""
    return Bounds(seconds, say, fatal=False, ends=False)


def call_again(bounds: Bounds) -> list[str]:
    """The `before_fork` callbacks that have been called."""
    what = "before_fork callbacks, called again"
    return _within(bounds, what, _WAITS, callbacks.run_before_again)


def close(bounds: Bounds) -> list[str]:
    """What is closed without any callback, each kind within the time: one that hangs
    leaves the others."""
    return [
        line
        for name in closing.KINDS
        for line in _within(
            bounds,
            f"closing {name} before a fork",
            _OPEN,
            partial(closing.close, name),
        )
    ]


def _within(
    bounds: Bounds, what: str, then: str, work: Callable[[], list[str]]
) -> list[str]:
    try:
        with bounds.over(what, then=then):
            return work()
    except WarmupError:  # the bound has said it
        return []
