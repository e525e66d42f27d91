"""The audit's event loops: those that are open, and what is bound to one that is not.

What `loops.unbind` could mend is mended by now. A client that keeps its loop (aiohttp),
a task or future that nobody ends any more, and a lock that was left locked are not.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cowpreload.errors import RAISED
from cowpreload.records import Finding

_LOOP_ADVICE = "workers would share its selector; make it after the fork"
_BOUND_ADVICE = (
    "its loop is closed; close it at the lifespan's shutdown or in before_fork, and "
    "make it after the fork"
)
_LOCK_ADVICE = "nobody will release it; release it where a request ends"


def _instances(*kinds: type) -> list[Any]:
    # By type: isinstance() would look at __class__, which builds Django's lazy objects.
    return [each for each in gc.get_objects() if issubclass(type(each), kinds)]


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _holders(loops: list[Any]) -> Iterator[Any]:
    """The objects with an attribute that is one of these, asyncio's own left out.

    All at once: to look for referrers is to go through the whole heap.
    """
    referrers = gc.get_referrers(*loops)
    # Until 3.12, and where a class has no slots, an object's dict refers to them.
    dicts = [each for each in referrers if type(each) is dict]
    theirs = set(map(id, dicts))
    owners = [each for each in referrers if type(each) is not dict]
    for each in gc.get_referrers(*dicts) if dicts else []:
        if id(getattr(each, "__dict__", None)) in theirs:
            owners.append(each)
    for each in owners:
        module = type(each).__module__
        if module.partition(".")[0] not in ("asyncio", "builtins", "_asyncio"):
            yield each


def _descriptors(loop: Any) -> set[int]:
    """The descriptors of a loop of asyncio's own."""
    found = set()
    for name in ("_selector", "_ssock", "_csock"):
        part = getattr(loop, name, None)
        try:
            found.add(part.fileno())  # type: ignore[union-attr]
        except (AttributeError, OSError, ValueError):
            continue
    return found


def event_loops(fds: set[int]) -> Iterator[Finding]:
    """Open loops, and what is bound to closed ones.

    Args:
        fds: the descriptors of the open ones are added.
    """
    events = sys.modules.get("asyncio.events")
    if events is None:
        return
    closed = []
    for loop in _instances(events.AbstractEventLoop):
        if loop.is_closed():
            closed.append(loop)
            continue
        own = _descriptors(loop)
        fds |= own
        numbers = ",".join(str(each) for each in sorted(own))
        where = f"type={_name(loop)} fds={numbers or 'unknown'}"
        yield Finding("event-loop", where, _LOOP_ADVICE)
    yield from _bound(closed)


def _is_closed(client: Any) -> bool:
    try:
        return getattr(client, "closed", False) is True
    except RAISED:  # one that never was connected may not know
        return False


def _bound(loops: list[Any]) -> list[Finding]:
    """What is bound to these, which are closed: a finding for each type."""
    if not loops:
        return []
    held = Counter(_name(each) for each in _holders(loops) if not _is_closed(each))
    closed = set(map(id, loops))
    futures = sys.modules["asyncio.futures"]
    for each in _instances(futures.Future, futures._PyFuture):
        if id(each.get_loop()) in closed and not each.done():
            held[_name(each)] += 1
    return [
        Finding("loop-bound", f"type={name} count={count}", _BOUND_ADVICE)
        for name, count in held.items()
    ]


def left_locked() -> list[Finding]:
    """asyncio's locks that are held: nobody lives who would release them."""
    locks = sys.modules.get("asyncio.locks")
    if locks is None:
        return []
    count = sum(each.locked() for each in _instances(locks.Lock))
    where = f"type=asyncio.locks.Lock count={count}"
    return [Finding("locked", where, _LOCK_ADVICE)] if count else []
