"""Where a process listens: what tells one server of an application from another.

Takes a pid; gives a text that is the same after a restart. Reads /proc alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cowpreload.texts import proc_lines

_LISTEN = "0A"  # TCP_LISTEN, as /proc/net/tcp has it
_ACCEPTS = 0x10000  # __SO_ACCEPTCON, of /proc/net/unix


def addresses(pid: int) -> str:
    """Its TCP addresses, else its Unix sockets; "" if there are none to be seen.

    The control socket of gunicorn and the like are Unix sockets beside the server's.
    """
    try:
        sockets = _sockets(pid)
        found = sorted(_tcp(pid, sockets)) or sorted(_unix(pid, sockets))
    except OSError:  # it has ended, or is another user's
        return ""
    return " ".join(dict.fromkeys(found))


def _sockets(pid: int) -> set[str]:
    """Their inodes."""
    found = set()
    for each in os.scandir(f"/proc/{pid}/fd"):
        try:
            inode = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(each.path))
        except OSError:
            continue  # closed meanwhile
        if inode:
            found.add(inode[1])
    return found


def _rows(pid: int, name: str) -> Iterator[list[str]]:
    """Of the network namespace that the process is in."""
    try:
        lines = proc_lines(f"/proc/{pid}/net/{name}")
    except FileNotFoundError:
        return  # no IPv6
    yield from (line.split() for line in lines[1:])


def _tcp(pid: int, sockets: set[str]) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        for row in _rows(pid, name):
            if len(row) > 9 and row[3] == _LISTEN and row[9] in sockets:
                yield f"{name}:{row[1]}"


def _unix(pid: int, sockets: set[str]) -> Iterator[str]:
    for row in _rows(pid, "unix"):
        if len(row) > 7 and int(row[3], 16) & _ACCEPTS and row[6] in sockets:
            yield f"unix:{row[7]}"
