"""What the interpreter keeps in code objects and functions, through the native core.

Takes code and functions of the main interpreter; gives states, and carries what running
has left from one code object to its copy. Holds no policy: what may be moved is
hot_code.py's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType

from cowpreload import opcodes
from cowpreload._core import check, ffi, immortal_why_not, lib

TICKING: int = lib.COW_CODE_TICKING
COMPILED: int = lib.COW_CODE_COMPILED
HAVE_RUN = frozenset((lib.COW_CODE_SETTLED, lib.COW_CODE_TICKING))
CAN_MOVE = HAVE_RUN | {lib.COW_CODE_COLD}


@functools.cache
def state_of() -> Callable[[CodeType], int] | None:
    """What tells a code object's state; None if this interpreter's is not known."""
    if immortal_why_not():  # the same interpreters were tested
        return None
    known = ffi.new("struct cow_opcodes *")
    known.length = list(opcodes.lengths())
    known.ran = list(opcodes.made_by_running())
    known.first = opcodes.first_caches()

    def look(code: CodeType) -> int:
        return int(lib.cow_code_state(ffi.cast("void *", id(code)), known))

    return look


def carry(code: CodeType, copy: CodeType) -> None:
    """Write what running `code` has left in it into a fresh copy.

    Raises:
        NativeError: it is not a copy, or somebody has tied something to one of them.
    """
    pair = ffi.cast("void *", id(code)), ffi.cast("void *", id(copy))
    check(lib.cow_code_carry(*pair))


def set_code(function: FunctionType, copy: CodeType) -> bool:
    """Set `__code__` to a copy of it, specialized calls kept; whether it was set."""
    pair = ffi.cast("void *", id(function)), ffi.cast("void *", id(copy))
    return bool(lib.cow_function_set_code(*pair) == lib.COW_OK)
