"""A warm-up file on the disk: read with suspicion, written whole or not at all.

Takes a path; gives bytes, or the reason why not, which is no exception: a file that
cannot be used ends neither a start nor a server. What is in it will be requested by a
master, maybe by root's: whatever another user could have written there is refused.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from dataclasses import dataclass

# 200 pages of 250 bytes are 50 KiB; the rest is room for an operator's own lines.
MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Loaded:
    """What is in a file; nothing if it is not there yet.

    Attributes:
        fault: why it must be neither read nor replaced, and what to do; or "".
    """

    text: bytes = b""
    fault: str = ""


def _fault(about: os.stat_result, uid: int) -> str:
    """Why a file with these attributes is not to be trusted, or ""."""
    if stat.S_ISLNK(about.st_mode):
        return "is a symbolic link; name the file that it points to"
    if not stat.S_ISREG(about.st_mode):
        return "is no regular file; name another"
    if about.st_uid not in (0, uid):
        return (
            f"belongs to uid={about.st_uid}, and its pages would be requested as "
            f"{uid=}; chown it, or name another"
        )
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users; chmod go-w"
    if about.st_size > MOST_BYTES:
        return f"is larger than {MOST_BYTES >> 20} MiB; shorten it, or remove it"
    return ""


def _said(error: OSError) -> str:
    return f"{error.strerror or error}".lower()


def load(path: str, uid: int | None = None) -> Loaded:
    """Read the file; one that is not there yet is empty.

    Args:
        uid: of the master whose file it is; None: this process.
    """
    uid = os.geteuid() if uid is None else uid
    # A device or a pipe must not even be opened; what has come in its place by then
    # is not followed, nor waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fault = _fault(os.lstat(path), uid)
        if fault:
            return Loaded(fault=fault)
        with open(os.open(path, flags), "rb") as file:
            fault = _fault(os.fstat(file.fileno()), uid)
            text = b"" if fault else file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        if os.path.isdir(os.path.dirname(path)):
            return Loaded()
        return Loaded(fault="its directory is not there; make it")
    except (OSError, ValueError) as error:  # a path with a NUL in it
        said = _said(error) if isinstance(error, OSError) else str(error)
        return Loaded(fault=f"cannot be read ({said}); mend that, or name another")
    return Loaded(text, fault)


def store(path: str, text: bytes, owner: tuple[int, int] | None = None) -> str:
    """Replace the file, for its owner alone; why that failed, or "".

    The owner is this process's user, or `owner`, a uid and a gid.

    Not synchronized with the disk: that may take seconds, in which the master would
    replace no worker. A file that a loss of power has emptied is learned anew.
    """
    try:
        fd, made = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".cow-")
    except OSError as error:
        return f"cannot be written ({_said(error)})"
    try:
        with open(fd, "wb") as file:
            file.write(text)
            if owner is not None:
                os.fchown(fd, *owner)
        os.replace(made, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(made)
        if not isinstance(error, OSError):
            raise
        return f"cannot be written ({_said(error)})"
    return ""
