"""Close anew, unasked, what children must not share; each kind within a time.

Takes Bounds; gives lines on the faults. A callback that flushes a client may wait for a
thread that ended at the first call of it: what does not come back is said, given up,
and may be open. Nothing here ends a master, whether it serves or starts.
"""

from __future__ import annotations

from collections.abc import Callable

from cowpreload import callbacks
from cowpreload.closing import close_all
from cowpreload.deadline import Bounds
from cowpreload.errors import WarmupError


def bounded(seconds: float, say: Callable[[str], None]) -> Bounds:
    """For the two below: it ends no process, not even one that it cannot interrupt."""
    return Bounds(seconds, say, fatal=False, ends=False)


def call_again(bounds: Bounds) -> list[str]:
    """The `before_fork` callbacks that have been called."""
    return _within(
        bounds, "before_fork callbacks, called again", callbacks.run_before_again
    )


def close(bounds: Bounds) -> list[str]:
    """What is closed without any callback."""
    return _within(bounds, "closing before a fork", close_all)


def _within(bounds: Bounds, what: str, work: Callable[[], list[str]]) -> list[str]:
    try:
        with bounds.over(what):
            return work()
    except WarmupError:  # the bound has said it
        return []
