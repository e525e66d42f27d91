"""Audit: what this process holds that does not survive a fork.

Takes the descriptors that existed before the application was loaded (they are the
host's) and gives Findings: threads, connections, files open for writing, locks.
Reads /proc/self and the heap; must not change, close or stop anything.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from cowpreload.records import Finding

Descriptors = frozenset[tuple[int, int, int]]

_THREAD_ADVICE = "threads do not survive a fork; start it after the fork"
_SOCKET_ADVICE = "workers would share it; close it in a cowpreload.before_fork callback"
_FILE_ADVICE = "workers would share its offset; open it after the fork"
_LOCK_ADVICE = "a lock is not inherited, or held by all; take it after the fork"


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


def descriptors() -> Descriptors:
    """What is open now; taken before the application is loaded."""
    found = (_identity(fd) for fd in _open_fds())
    return frozenset(each for each in found if each is not None)


def _stands(ident: int | None) -> str:
    """Where a thread's innermost frame outside the standard library is."""
    frame = sys._current_frames().get(ident or 0)
    library = os.path.dirname(threading.__file__)
    first = frame
    while frame is not None and frame.f_code.co_filename.startswith(library + os.sep):
        if "site-packages" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    frame = frame or first
    if frame is None:
        return "unknown"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}({frame.f_code.co_name})"


def _threads() -> Iterator[Finding]:
    for thread in threading.enumerate():
        if thread is threading.main_thread():
            continue
        where = f"name={thread.name} at={_stands(thread.ident)}"
        yield Finding("thread", where, _THREAD_ADVICE)


def _native_threads() -> Iterator[Finding]:
    """Threads of C libraries, of which Python knows nothing."""
    known = {thread.native_id for thread in threading.enumerate()} | {os.getpid()}
    try:
        tids = sorted(int(name) for name in os.listdir("/proc/self/task"))
    except OSError:
        return
    for tid in tids:
        if tid in known:
            continue
        try:
            name = Path(f"/proc/self/task/{tid}/comm").read_text().strip()
        except OSError:
            continue  # it ended meanwhile
        yield Finding("native-thread", f"name={name} tid={tid}", _THREAD_ADVICE)


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


def _tls_fds() -> set[int]:
    """Descriptors under a TLS session, whose cipher state two processes break."""
    if "ssl" not in sys.modules:
        return set()
    from ssl import SSLSocket

    # By type: isinstance() would look at __class__, which builds Django's lazy objects.
    sockets = [each for each in gc.get_objects() if issubclass(type(each), SSLSocket)]
    return {each.fileno() for each in sockets}


def _logging_fds() -> set[int]:
    """Files that logging handlers append to: each record is one whole write."""
    logging = sys.modules.get("logging")
    if logging is None:
        return set()
    found = set()
    for reference in getattr(logging, "_handlerList", ()):
        stream = getattr(reference(), "stream", None)
        try:
            found.add(stream.fileno())  # type: ignore[union-attr]
        except (AttributeError, OSError, ValueError):
            continue
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


def _file(fd: int, mode: int, logging_fds: set[int]) -> Iterator[Finding]:
    flags, locks = _fdinfo(fd)
    path = os.readlink(f"/proc/self/fd/{fd}")
    for lock in locks:
        kind = " ".join(lock.split()[1:4])
        yield Finding("lock", f"path={path} kind={kind}", _LOCK_ADVICE)
    writable = bool(flags & (os.O_WRONLY | os.O_RDWR))
    safe = flags & os.O_APPEND and fd in logging_fds
    if stat.S_ISREG(mode) and writable and not safe and not path.startswith("/memfd:"):
        yield Finding("file", f"path={path} fd={fd}", _FILE_ADVICE)


def _open_things(before: Descriptors) -> Iterator[Finding]:
    logging_fds = _logging_fds()
    tls_fds = cache(_tls_fds)  # only if there is a connection: it looks at every object
    for fd in _open_fds():
        if _identity(fd) in before or fd <= 2:
            continue
        try:
            mode = os.fstat(fd).st_mode
            if stat.S_ISSOCK(mode):
                peer = _peer(fd)
                if peer:
                    what = "tls-connection" if fd in tls_fds() else "connection"
                    where = f"peer={peer[1]} transport={peer[0]} fd={fd}"
                    yield Finding(what, where, _SOCKET_ADVICE)
            else:
                yield from _file(fd, mode, logging_fds)
        except OSError:
            continue  # closed meanwhile


def audit(before: Descriptors, *, process_wide: bool = True) -> list[Finding]:
    """Look once; call it after the warm up and before the first fork.

    Args:
        before: descriptors() of a moment before the application was loaded.
        process_wide: False in a further interpreter of the process, where only
            its own threads are looked at.
    """
    stages: list[Callable[[], Iterator[Finding]]] = [_threads]
    if process_wide:
        stages += [_native_threads, lambda: _open_things(before)]
    return [finding for stage in stages for finding in stage()]
