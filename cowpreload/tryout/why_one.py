"""What `cowpreload why` says of the largest worker of a server.

Takes a running server with a board; gives a Why, or None and says why not. The worker
serves on.
"""

from __future__ import annotations

from collections.abc import Callable

from cowpreload.bench.observe import look
from cowpreload.bench.server import Server
from cowpreload.causes import Cause
from cowpreload.errors import CowError
from cowpreload.tryout.records import Why
from cowpreload.why.advice import advise
from cowpreload.why.examine import examine


def why(server: Server, say: Callable[[str], None]) -> Why | None:
    """Examine one worker; `say` is told what fails."""
    workers = look(server).workers
    if not workers:
        return None
    largest = max(workers, key=lambda each: each.private)
    try:
        sharing = examine(largest.pid)
    except (CowError, OSError) as error:
        say(f"why: {error}")
        return None
    return Why(
        private=sharing.private,
        new=sharing.share(Cause.NEW),
        advice=advise(sharing),
        causes=tuple(
            (row.cause.value, row.pages * sharing.page_size)
            for row in sharing.rows
            if row.pages
        ),
    )
