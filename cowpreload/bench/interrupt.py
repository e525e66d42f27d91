"""SIGINT and SIGTERM as one exception, so that everything that was started is ended."""

from __future__ import annotations

import contextlib
import signal
import tempfile
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal asked for the end; `args[0]` is its number."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first signal into Interrupted, and ignore the rest for good.

    Who starts the program may block them until this: an interpreter that has not come
    so far would show a traceback (tools/envs.py does).
    """
    interrupted = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    before = {each: signal.signal(each, stop) for each in SIGNALS}
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        yield
    finally:
        if not interrupted:  # else it ends now, however impatient the user is
            for each, handler in before.items():
                signal.signal(each, handler)


@contextlib.contextmanager
def directory(prefix: str) -> Iterator[str]:
    """A temporary directory that is gone at the end, whenever a signal comes.

    One between mkdir() and the making of what removes it would leave it in /tmp.
    """
    with contextlib.ExitStack() as stack:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield name
