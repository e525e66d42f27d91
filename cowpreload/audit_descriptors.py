"""The audit's descriptors: connections, files, locks, and what the kernel counts in.

Left out: what is made to be shared (listening sockets, datagrams, multiprocessing's
pipes) and files whose offset nobody uses (opened for appending, or mapped).
"""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from cowpreload.errors import RAISED
from cowpreload.records import Finding
from cowpreload.texts import proc_lines

Descriptors = frozenset[tuple[int, int, int]]

_SOCKET_ADVICE = "workers would share it; close it in a cowpreload.before_fork callback"
_FILE_ADVICE = "workers would share its offset; open it after the fork"
_LOCK_ADVICE = "a lock is not inherited, or held by all; take it after the fork"
_PIPE_ADVICE = "each worker would take a part of what comes; open it after the fork"
_KERNEL_ADVICE = "workers would share what it counts; make it after the fork"

# What the kernel calls them, and what we do.
_ANONYMOUS = {
    "eventpoll": "epoll",
    "inotify": "inotify",
    "fanotify": "fanotify",
    "eventfd": "eventfd",
    "timerfd": "timerfd",
    "signalfd": "signalfd",
    "io_uring": "io_uring",
}
# Those of a native event loop. gevent's and ddtrace's are made anew in a fork, and
# nothing tells whose one is.
_OF_LOOPS = ("epoll", "eventfd", "timerfd", "io_uring")


def _identity(fd: int) -> tuple[int, int, int] | None:
    try:
        about = os.fstat(fd)
    except OSError:
        return None
    return fd, about.st_dev, about.st_ino


def _open_fds() -> list[int]:
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return []
    return sorted(int(name) for name in names)


def descriptors(fds: Iterable[int] | None = None) -> Descriptors:
    """What is open now, or these of it; taken before the application is loaded."""
    found = (_identity(fd) for fd in (_open_fds() if fds is None else fds))
    return frozenset(each for each in found if each is not None)


def _peer(fd: int) -> tuple[str, str] | None:
    """Transport and peer of a connected stream socket, or None."""
    try:
        probe = socket.socket(fileno=os.dup(fd))
    except OSError:
        return None
    with probe:
        # Datagrams are whole messages: workers may share such a socket.
        if probe.type != socket.SOCK_STREAM:
            return None
        try:
            peer = probe.getpeername()
        except OSError:
            return None  # listening, or never connected
    if probe.family == socket.AF_UNIX:
        name = peer if isinstance(peer, str) else peer.decode(errors="replace")
        return "unix", name or "socketpair"
    return "tcp", f"{peer[0]}:{peer[1]}"


def _fds_of(*kinds: type) -> set[int]:
    """The descriptors of the objects of these classes."""
    found = set()
    # By type: isinstance() would look at __class__, which builds Django's lazy objects.
    for each in [each for each in gc.get_objects() if issubclass(type(each), kinds)]:
        try:
            found.add(each.fileno())
        except RAISED:
            continue  # it is closed
    return found


def _tls_fds() -> set[int]:
    """Descriptors under a TLS session, whose cipher state two processes break."""
    ssl = sys.modules.get("ssl")
    return _fds_of(ssl.SSLSocket) if ssl is not None else set()


def _shared_fds() -> set[int]:
    """Descriptors that multiprocessing made to be shared by processes."""
    found = set()
    connection = sys.modules.get("multiprocessing.connection")
    if connection is not None:
        found |= _fds_of(connection._ConnectionBase)
    tracker = sys.modules.get("multiprocessing.resource_tracker")
    if tracker is not None and tracker._resource_tracker._fd is not None:
        found.add(tracker._resource_tracker._fd)
    server = sys.modules.get("multiprocessing.forkserver")
    if server is not None and server._forkserver._forkserver_alive_fd is not None:
        # Each worker closes its own (executors.forget_fork_server).
        found.add(server._forkserver._forkserver_alive_fd)
    return found


def _mapped_files() -> set[str]:
    """The path of each file that is mapped shared and for writing."""
    found = set()
    for line in proc_lines("/proc/self/maps"):
        fields = line.split(maxsplit=5)
        if fields[1][1] == "w" and fields[1][3] == "s" and len(fields) > 5:
            found.add(fields[5])
    return found


def _fdinfo(fd: int) -> tuple[int, list[str]]:
    """The open flags and lock lines that the kernel shows of a descriptor."""
    flags, locks = 0, []
    try:
        text = Path(f"/proc/self/fdinfo/{fd}").read_text()
    except OSError:
        return 0, []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            flags = int(value, 8)
        elif name == "lock":
            locks.append(value.strip())
    return flags, locks


class _Look:
    """One look at the open descriptors; what is asked for costs a look at the heap."""

    def __init__(self, at_fork: bool) -> None:
        self.at_fork = at_fork
        self.tls = cache(_tls_fds)
        self.shared = cache(_shared_fds)
        self.mapped = cache(_mapped_files)

    def at(self, fd: int) -> Iterator[Finding]:
        about = os.fstat(fd)
        if stat.S_ISSOCK(about.st_mode):
            yield from self._socket(fd)
        elif stat.S_ISREG(about.st_mode):
            yield from self._file(fd)
        else:
            yield from self._other(fd, stat.S_ISFIFO(about.st_mode))

    def _socket(self, fd: int) -> Iterator[Finding]:
        peer = _peer(fd)
        if peer and fd not in self.shared():
            what = "tls-connection" if fd in self.tls() else "connection"
            where = f"peer={peer[1]} transport={peer[0]} fd={fd}"
            yield Finding(what, where, _SOCKET_ADVICE)

    def _file(self, fd: int) -> Iterator[Finding]:
        flags, locks = _fdinfo(fd)
        path = os.readlink(f"/proc/self/fd/{fd}")
        for lock in locks:
            kind = " ".join(lock.split()[1:4])
            yield Finding("lock", f"path={path} kind={kind}", _LOCK_ADVICE)
        if not flags & (os.O_WRONLY | os.O_RDWR) or path.startswith("/memfd:"):
            return
        if flags & os.O_APPEND or path in self.mapped():
            return
        yield Finding("file", f"path={path} fd={fd}", _FILE_ADVICE)

    def _other(self, fd: int, fifo: bool) -> Iterator[Finding]:
        if fifo:
            if fd not in self.shared():
                flags, _ = _fdinfo(fd)
                end = "write" if flags & os.O_WRONLY else "read"
                yield Finding("pipe", f"end={end} fd={fd}", _PIPE_ADVICE)
            return
        kind = (
            os.readlink(f"/proc/self/fd/{fd}").removeprefix("anon_inode:").strip("[]")
        )
        what = _ANONYMOUS.get(kind)
        if what and not (what in _OF_LOOPS and self._renewed()):
            yield Finding(what, f"fd={fd}", _KERNEL_ADVICE)

    def _renewed(self) -> bool:
        """Whether a library has a native event loop that starts anew in a fork."""
        gevent = sys.modules.get("gevent._hub_local")
        if gevent is not None and gevent.get_hub_if_exists() is not None:
            return True
        return self.at_fork and "ddtrace" in sys.modules


def open_things(
    before: Descriptors, known: set[int], at_fork: bool
) -> Iterator[Finding]:
    """What is open now and was not `before`; `known` are in findings already."""
    look = _Look(at_fork)
    for fd in _open_fds():
        if fd <= 2 or fd in known or _identity(fd) in before:
            continue
        try:
            yield from look.at(fd)
        except OSError:
            continue  # closed meanwhile
