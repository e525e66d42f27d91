"""Audit: what this process holds that does not survive a fork.

Takes the descriptors that existed before the application was loaded (they are the
host's) and gives Findings: threads, event loops, connections, open files, locks. Reads
/proc/self and the heap; must not change, close or stop anything, and must not raise: it
meets objects of any kind. A part that cannot be looked at is a finding.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable

from cowpreload.audit_descriptors import Descriptors, descriptors, open_things
from cowpreload.audit_loops import event_loops, left_locked
from cowpreload.audit_threads import native_threads, threads
from cowpreload.errors import RAISED, said
from cowpreload.records import Finding

__all__ = ["Descriptors", "audit", "descriptors"]


_UNAUDITED_ADVICE = "the rest of this part is not known; report this line"


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
        found: list[Finding] = []
        fds: set[int] = set()
        _try("event-loops", lambda: event_loops(fds), found)
        _try("asyncio-locks", left_locked, found)
        _try("threads", lambda: threads(at_fork), found)
        if process_wide:
            _try("native-threads", lambda: native_threads(at_fork), found)
            _try("descriptors", lambda: open_things(before, fds, at_fork), found)
        return found

    found = look()
    if found:
        gc.collect()  # what is garbage, an ended process's pipe, is none
        found = look()
    return found


def _try(
    part: str, look: Callable[[], Iterable[Finding]], found: list[Finding]
) -> None:
    """Add what this part finds, until it meets something that raises."""
    try:
        for each in look():
            found.append(each)
    except RAISED as error:
        where = f"part={part} error={said(error)}"
        found.append(Finding("unaudited", where, _UNAUDITED_ADVICE))
