"""This interpreter's instructions: their numbers, and how long each is.

Takes the tables of `dis`, in part under private names, the same from 3.11 on; gives
empty ones where there are none. A unit is two bytes: opcode and argument, or a part of
an inline cache.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Mapping
from typing import Final

_TABLES: Final = vars(dis)
OPCODES: Final[Mapping[str, int]] = _TABLES.get("_all_opmap", {})
BASES: Final[Mapping[str, str]] = _TABLES.get("deoptmap", {})
"""What a specialized instruction was made of."""

# They stand in the place of another, whose length they do not tell.
_HIDING = {
    "CACHE",
    "RESERVED",
    "ENTER_EXECUTOR",
    "INSTRUMENTED_INSTRUCTION",
    "INSTRUMENTED_LINE",
}


def cache_sizes() -> list[int]:
    """How many units of cache follow each opcode."""
    entries = _TABLES.get("_inline_cache_entries", {})
    sizes = [0] * 256
    for name, opcode in OPCODES.items():
        base = BASES.get(name, name).removeprefix("INSTRUMENTED_")
        if opcode < 256 and base in OPCODES:
            key = base if hasattr(entries, "get") else OPCODES[base]
            sizes[opcode] = (
                entries.get(key, 0) if hasattr(entries, "get") else entries[key]
            )
    return sizes


def lengths() -> bytes:
    """How many units an instruction takes, by its opcode; 0: that cannot be known."""
    sizes, found = cache_sizes(), bytearray(256)
    for name, opcode in OPCODES.items():
        if opcode < 256 and name not in _HIDING:
            found[opcode] = 1 + sizes[opcode]
    return bytes(found)


def made_by_running() -> bytes:
    """1 by opcode for those that the interpreter makes when it runs code.

    Only those: some that have no cache are made when code is.
    """
    sizes, found = cache_sizes(), bytearray(256)
    for name in BASES:
        opcode = OPCODES.get(name, 256)
        if opcode < 256 and (sizes[opcode] or name.startswith("RESUME_CHECK")):
            found[opcode] = 1
    return bytes(found)


def first_caches() -> list[int]:
    """The first unit of cache by opcode, as it is in code that has not run."""
    sizes, first = cache_sizes(), [0] * 256
    cached = [
        opcode
        for name, opcode in OPCODES.items()
        if opcode < 256 and sizes[opcode] and name not in BASES
    ]
    # Code that nobody runs, of each of these: what the interpreter makes of it.
    text = b"".join(bytes((each, 0)) + bytes(2 * sizes[each]) for each in cached)
    code = first_caches.__code__.replace(co_code=text + first_caches.__code__.co_code)
    made, at = bytes(getattr(code, "_co_code_adaptive", b"")), 0
    for each in cached:
        first[each] = int.from_bytes(made[at + 2 : at + 4], sys.byteorder)
        at += 2 + 2 * sizes[each]
    return first
