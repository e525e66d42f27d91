"""Event loops that the master has used: let go of what is bound to one that is closed.

asyncio's Lock, Event, Condition, Semaphore, Queue and Barrier bind themselves to the
loop in which somebody first had to wait. A warm up's loop is closed before the fork;
bound to it, each worker would answer "is bound to a different event loop" for ever.

`settle` is the last that runs in such a loop: tasks are cancelled and connections
closed, so that clients (httpx) see it and open new ones. `unbind` comes after it, and
does for loops of others (asgiref's) too. What neither can mend is the audit's.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any

from cowpreload.errors import RAISED

_SETTLE_SECONDS = 1.0


async def settle() -> None:
    """Cancel the other tasks of this loop, then close the connections it has left.

    Waits a second at most: a task may catch its cancellation.
    """
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_SETTLE_SECONDS)
    # asyncio's own loop alone keeps a list; the audit sees what others leave open.
    transports = list(getattr(loop, "_transports", {}).values())
    for transport in transports:
        transport.abort()
    if transports:
        # One turn of the loop for connection_lost, one more for TLS above it.
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def unbind() -> None:
    """In the master: unbind what waited in a loop that is closed.

    Its waiters lived in that loop, and nobody wakes them. Items of a queue, a set event
    and a lock that is still locked stay as they are. What an odd one raises is raised
    when the others are unbound.
    """
    mixins = sys.modules.get("asyncio.mixins")
    if mixins is None:
        return
    kind = mixins._LoopBoundMixin
    fault: BaseException | None = None
    for each in gc.get_objects():
        if issubclass(type(each), kind):
            try:
                _unbind(each)
            except RAISED as error:
                fault = fault or error
    if fault is not None:
        raise fault


def _unbind(primitive: Any) -> None:
    loop = primitive._loop
    if loop is None or not loop.is_closed():
        return
    primitive._loop = None
    for name in ("_waiters", "_getters", "_putters"):
        waiters = getattr(primitive, name, None)
        if waiters:
            waiters.clear()
