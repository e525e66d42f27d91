"""Freeze: make the loaded heap one that the collector will not touch again.

Takes nothing; gives a FreezeReport. Called once, in the master, after the audit and
right before the first fork, and again only when the heap is loaded anew: a freeze
at every fork leaks in a master that keeps forking (Airflow, PR 60505). In further
interpreters of the process it is called in each; the C heap is trimmed by the host
at the end.
"""

from __future__ import annotations

import gc
import time

from cowpreload.records import FreezeReport


def freeze() -> FreezeReport:
    """Collect everything, then move all that is left to the permanent generation."""
    start = time.monotonic()
    collected = gc.collect() or 0  # PyPy gives None
    if not hasattr(gc, "freeze"):  # there, too: the collection compacts what is shared
        return FreezeReport(0, collected, time.monotonic() - start)
    # Making the survivors immortal belongs here, between the two: the walk needs
    # the collector's lists, which gc.freeze() empties.
    gc.freeze()
    return FreezeReport(gc.get_freeze_count(), collected, time.monotonic() - start)
