"""What can go wrong, by whose fault. Only a host or the command line prints these."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Final

RAISED: Final = (Exception, SystemExit)
"""What code of an application raises that must not end a start or a worker."""


def is_interrupt(error: BaseException) -> bool:
    """Whether it is Ctrl-C that speaks, where no host has a handler of its own.

    Whatever else a page raises is the page's: neither asyncio's CancelledError nor
    gevent's Timeout is an Exception, and no start should end by them.
    """
    theirs = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return theirs and isinstance(error, KeyboardInterrupt)


class CowError(Exception):
    """Superclass of all errors of this package; never raised itself."""


class SettingsError(CowError):
    """The configuration is refused; `args[0]` lists every fault, one a line.

    Attributes:
        faults: lines `<setting>=<value>: <rule>; <what to do>`.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class WarmupError(CowError):
    """A warm-up request failed; the text names path and error."""

    @classmethod
    def raised(cls, path: str, error: BaseException) -> WarmupError:
        """The error for a path whose page raised `error`."""
        return cls(
            f"warmup={path}: raised {type(error).__name__}: {error}; "
            "mend the page or leave the path out"
        )


class ForkSafetyError(CowError):
    """`fork-safety=strict` and something would not survive the fork."""


class NativeError(CowError):
    """The native core gave a code; `args[0]` is its name, from `cow_strerror`."""


class PluginBuildError(CowError):
    """The uWSGI plugin cannot be built; the text says what is missing."""


class NotFoundError(CowError, LookupError):
    """What was asked for, or is needed, is not there; the text says what to do."""


class WhyError(CowError):
    """A process cannot be examined; the text says what to do."""


def said(error: BaseException) -> str:
    """Its type and text for a log line; its text is anyone's code, and may raise."""
    try:
        text = " ".join(str(error).split())
    except RAISED:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def fault(error: BaseException) -> str:
    """What was wrong, for a line that says by itself what failed and what to do."""
    if isinstance(error, WarmupError):  # `<what>: <fault>; <what to do>`
        return str(error).partition(": ")[2].partition(";")[0]
    return f"raised {said(error)}"
