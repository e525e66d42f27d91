"""Room: whether a file takes so many bytes at once, without any wait for a reader.

Takes a descriptor and a number of bytes; may make a pipe larger, and changes nothing
else. Works in every interpreter of the process; must not import the native core.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import termios

# What every user may make of a pipe, unless fs.pipe-max-size is set lower.
_LARGEST_PIPE = 1 << 20


def has_room(descriptor: int, size: float) -> bool:
    """Whether `size` bytes (infinity: nobody knows how many) can be written at once."""
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return True
        if stat.S_ISCHR(mode):
            return not os.isatty(descriptor) and _is_writable(descriptor)
        # One that takes a byte need not take 8 KiB, and an empty one not 128. Each
        # write may leave most of a page of it unused: hence twice.
        if stat.S_ISFIFO(mode) and _is_writable(descriptor):
            return _is_empty(descriptor) and _makes_room(descriptor, 2 * size)
    except OSError:
        pass
    return False


def _is_writable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return [event for _, event in poll.poll(0)] == [select.POLLOUT]


def _is_empty(pipe: int) -> bool:
    unread = fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0))
    return struct.unpack("i", unread) == (0,)


def _makes_room(pipe: int, size: float) -> bool:
    """A pipe takes 64 KiB; a writer's buffer has 128 from Python 3.14 on.

    Raises:
        OSError: it may not be larger, or this user has too many large ones.
    """
    room = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    if room < size <= _LARGEST_PIPE:
        room = fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, int(size))
    return room >= size
