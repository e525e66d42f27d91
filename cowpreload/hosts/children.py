"""Around the children of a trial: what the master does for them, and they do first.

Whoever tries something in a child composes Work of its own; this is what all have in
common. Needs no native core: uWSGI's further interpreters import it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from cowpreload import mending, writers


def never() -> bool:
    """Of a master that no signal reaches meanwhile."""
    return False


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Around the trial, after what is not to be shared was closed.

    What is buffered would be written twice; executors and loops are whole in the child.
    """
    writers.flush_shared()
    mending.prepare()
    try:
        yield
    finally:
        mending.disarm()


def begin() -> None:
    """First thing in the child, after the host's."""
    if "gevent" in sys.modules:
        sys.modules["gevent"].reinit()
