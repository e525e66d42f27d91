"""Run a command whose system calls the kernel refuses: ERRNO CALL[,CALL...] COMMAND...

As a sandbox does: Docker's profile, an old kernel, gVisor. `thread` is a clone() that
makes one; clone3() says ENOSYS then, as there, so that the C library uses clone(). The
filter is inherited by all that the command starts, and none of it can take it off.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

# Of x86-64; a machine of another kind has no such tests.
CALLS = {
    "clone3": 435, "close_range": 436, "eventfd2": 290, "futex": 202,
    "memfd_create": 319, "process_vm_readv": 310, "timerfd_create": 283,
    "getrusage": 98, "madvise": 28, "prctl": 157, "tgkill": 234,
}  # fmt: skip
CLONE = 56
CLONE_THREAD = 0x10000
_LOAD, _SAME, _BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _FIRST_ARGUMENT = 0, 16  # in struct seccomp_data
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2


def program(refused: dict[str, int]) -> bytes:
    """The filter, in the kernel's instructions: (code, jump if true, if false, k)."""
    made = [(_LOAD, 0, 0, _NUMBER)]
    for name, number in refused.items():
        if name == "thread":
            made += [
                (_SAME, 0, 4, CLONE),
                (_LOAD, 0, 0, _FIRST_ARGUMENT),
                (_BITS, 0, 1, CLONE_THREAD),
                (_RETURN, 0, 0, _REFUSE | number),
                (_LOAD, 0, 0, _NUMBER),
            ]
        else:
            made += [
                (_SAME, 0, 1, CALLS[name]),
                (_RETURN, 0, 0, _REFUSE | number),
            ]
    made.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *each) for each in made)


def refuse(refused: dict[str, int]) -> None:
    """From now on, for this process and all that it starts."""
    text = program(refused)
    held = ctypes.create_string_buffer(text, len(text))
    about = struct.pack("HxxxxxxP", len(text) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((_NO_NEW_PRIVS, 1, 0, 0, 0), (_SECCOMP, _FILTER, about, 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    number = getattr(errno, sys.argv[1])
    wanted = dict.fromkeys(sys.argv[2].split(","), number)
    if "thread" in wanted:
        wanted["clone3"] = errno.ENOSYS
    refuse(wanted)
    os.execvp(sys.argv[3], sys.argv[3:])
