"""Around what runs unasked: records, notes, hints. It may fail; the server serves on.

Takes how the host says a line with the traceback of what was raised. Must be around
nothing that a start depends on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cowpreload.errors import said


@contextlib.contextmanager
def unasked(what: str, say_raised: Callable[[str], object]) -> Iterator[None]:
    """Say what `what` raises, and that the server does without.

    Args:
        what: a few words for the log.
        say_raised: logs a line and the traceback of the exception that is handled.
    """
    try:
        yield
    except Exception as error:
        say_raised(f"cow: {what}: {said(error)}: serving on without")
