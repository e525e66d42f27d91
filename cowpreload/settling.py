"""Settle: move what a worker has cached since the fork out of the collector's sight.

Takes this worker's young heap; gives a SettleReport. The freeze does it for what the
master loaded; a cache that is filled after the fork is traced at each full collection:
0.2 s for 600,000 objects, again and again. In further interpreters of the process it
is called in each, so it must not import the native core. It never calls
gc.unfreeze(): the inherited heap lies in the same generation, and the next collection
would write, that is copy, all of it.
"""

from __future__ import annotations

import gc
import time

from cowpreload import collector, freezing, writers
from cowpreload.records import SettleReport


def settle() -> SettleReport | None:
    """Collect, then let no collection look at what this worker has made so far.

    For a cache that a worker fills itself and keeps: call it when the cache is full,
    in `after_fork` or after the request that filled it. It takes as long as one full
    collection. What is settled is freed as ever when its last reference goes; only a
    *cycle* of settled objects, dropped later, is never freed: of a cache that turns
    over, entries must not refer to themselves, or `cow-max-growth` has to end the
    worker. What a request or another thread has in its hands at that moment is settled
    with the rest.

    Returns:
        What was done; None where nothing is: in the master (its freeze does it), in a
        process without a frozen heap behind it, on an interpreter that cannot.
    """
    if not collector.CAN_SETTLE or not freezing.is_inherited():
        return None
    start = time.monotonic()
    collected = gc.collect()
    objects = writers.keep()
    gc.freeze()
    collected += gc.collect()  # nothing but to count anew, as in freezing.freeze
    return SettleReport(objects, collected, time.monotonic() - start)
