"""The event log: one JSON object a line, appended to a file of the operator's.

Takes Events in the master, which alone writes; gives each one write(2) of a whole line.
Once it is open it must not raise and must end nothing: what the file does not take is
counted, and said once. The file is followed: rotated or removed, it is opened anew, so
that no signal is needed. Its descriptor is trusted only while it is the file that was
opened: an application may close what it does not know.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from datetime import datetime, timezone

from cowpreload.errors import RAISED
from cowpreload.events import Event, Fact, event, whole

_Identity = tuple[int, int]

# A FIFO that nobody reads must not hold the master.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
_MODE = 0o644


def fault(path: str, error: OSError) -> str:
    """What is wrong with the setting, as all settings say it."""
    return (
        f"event-log={path}: {error.strerror or error}; name a file that the master "
        "can append to"
    )


def _behind(link: str) -> str:
    """What a symbolic link of ours or root's names. Another user's would have a master
    of root's write into any file: the directory of a log is often the workers' user's.

    Raises:
        OSError: it is another user's.
    """
    fd = os.open(link, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        owner = os.fstat(fd).st_uid
        if owner not in (0, os.geteuid()):
            raise OSError(errno.ELOOP, f"is a symbolic link of uid={owner}")
        return os.path.join(os.path.dirname(link), os.readlink("", dir_fd=fd))
    finally:
        os.close(fd)


def _opened(path: str) -> int:
    """Its descriptor; never one of the three that others write to unasked.

    Raises:
        OSError: it cannot be opened, or is no path at all.
    """
    try:
        fd = os.open(path, _FLAGS | os.O_NOFOLLOW, _MODE)
    except ValueError as error:  # a NUL: a reload would end the server
        raise OSError(errno.EINVAL, str(error)) from error
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        fd = os.open(_behind(path), _FLAGS, _MODE)
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _of(about: os.stat_result) -> _Identity:
    return about.st_dev, about.st_ino


def _identity(fd: int) -> _Identity | None:
    """The file of a descriptor; None: it is closed."""
    try:
        return _of(os.fstat(fd))
    except OSError:
        return None


class EventLog:
    """The file of this server; nothing is written until it is open."""

    def __init__(self) -> None:
        self.path = ""
        self._fd = -1
        self._file: _Identity | None = None
        self._is_regular = False
        self._pid = 0
        self._say: Callable[[str], object] = lambda line: None
        self._said = False
        self._lost = 0
        self._cut = False
        self._began = time.monotonic()

    @property
    def is_open(self) -> bool:
        """Whether this process writes one."""
        return bool(self.path) and os.getpid() == self._pid

    @property
    def age(self) -> float:
        """Seconds since it was opened first."""
        return time.monotonic() - self._began

    def open(self, path: str, say: Callable[[str], object], fd: int = -1) -> None:
        """Begin; the calling process is the one that writes.

        Args:
            path: relative to the working directory of now.
            say: logs a line on a fault; must not raise.
            fd: the file, if it is open already: before privileges were dropped.

        Raises:
            OSError: it cannot be opened.
        """
        whole_path = os.path.abspath(path)
        opened = fd if fd >= 0 else _opened(whole_path)
        self.close()
        self.path = whole_path
        self._take(opened)
        self._say, self._pid = say, os.getpid()
        self._said, self._lost, self._cut = False, 0, False
        self._began = time.monotonic()

    def _take(self, fd: int) -> None:
        about = os.fstat(fd)
        self._fd, self._file = fd, _of(about)
        self._is_regular = stat.S_ISREG(about.st_mode)

    def close(self) -> None:
        """Write no more. In a worker: it must not keep a file that was rotated away."""
        if self._fd >= 0 and _identity(self._fd) == self._file:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self.path, self._fd, self._file = "", -1, None

    def write(self, make: Callable[[], Event]) -> None:
        """Append what `make` gives, if this process is the one that writes."""
        if not self.is_open:
            return
        try:
            self._follow()
            if self._lost:
                self._put(event("lost", events=self._lost))
                self._lost = 0
            self._put(make())
        except RAISED as error:
            self._lost += 1
            self._fault(error, "events are lost, and counted")

    def turn(self) -> None:
        """At a turn of the master: a file that was rotated is made anew at once."""
        if not self.is_open:
            return
        try:
            self._follow()
        except RAISED as error:
            self._fault(error, "events are lost, and counted")

    def _fault(self, error: BaseException, then: str) -> None:
        if not self._said:
            self._said = True
            self._say(f"cow: event-log={self.path}: {error}: {then}; serving on")

    def _put(self, each: Event) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        common = {"time": now.replace("+00:00", "Z"), "master_pid": self._pid}
        # The rest of a line that a full disk has cut must not spoil this one.
        line = ("\n" if self._cut else "") + each.line(common) + "\n"
        data = line.encode()
        written = os.write(self._fd, data)
        self._cut = written < len(data)
        if self._cut:
            raise OSError(f"{written} of {len(data)} bytes were taken")

    def _follow(self) -> None:
        """Open the path anew, if the descriptor is no longer its file."""
        if _identity(self._fd) != self._file:  # closed, and perhaps another's by now
            self._take(_opened(self.path))
            return
        if not self._is_regular:
            return
        try:
            if _of(os.stat(self.path)) == self._file:
                return
        except PermissionError:
            return  # privileges were dropped; the descriptor is as good as before
        except FileNotFoundError:
            pass
        try:
            fd = _opened(self.path)
        except OSError as error:
            self._fault(error, "the file that was rotated away is written on")
            return
        old = self._fd
        self._take(fd)
        self._cut = False
        os.close(old)


EVENT_LOG = EventLog()


def tell(fact: Fact, say: Callable[[str], object]) -> None:
    """One fact, two renderings: a line of the host's log, and an event.

    Args:
        say: logs a line; must not raise.
    """
    say(fact.line())
    EVENT_LOG.write(fact.event)


def end() -> None:
    """The master is told to end; of workers at their last requests more may come."""
    EVENT_LOG.write(lambda: event("end", seconds=whole(EVENT_LOG.age)))
