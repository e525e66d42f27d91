"""Audit: what this process holds that does not survive a fork.

Takes the descriptors that existed before the application was loaded (they are the
host's) and gives Findings: threads, event loops, connections, open files, locks. Reads
/proc/self and the heap; must not change, close or stop anything.
"""

from __future__ import annotations

import gc

from cowpreload.audit_descriptors import Descriptors, descriptors, open_things
from cowpreload.audit_loops import event_loops
from cowpreload.audit_threads import native_threads, threads
from cowpreload.records import Finding

__all__ = ["Descriptors", "audit", "descriptors"]


def audit(
    before: Descriptors, *, process_wide: bool = True, at_fork: bool = True
) -> list[Finding]:
    """Look; call it after the warm up and before the first fork.

    Args:
        before: descriptors() of a moment before the application was loaded.
        process_wide: False in a further interpreter of the process, where only its own
            threads and event loops are looked at.
        at_fork: whether the host's forks call what os.register_at_fork() was given.
    """

    def look() -> list[Finding]:
        found, fds = event_loops()
        found += threads(at_fork)
        if process_wide:
            found += native_threads(at_fork)
            found += open_things(before, fds, at_fork)
        return found

    found = look()
    if found:
        gc.collect()  # what is garbage, an ended process's pipe, is none
        found = look()
    return found
