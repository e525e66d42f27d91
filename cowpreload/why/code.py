"""Whether changed code had run before the fork. Pure, but for this Python's own tables.

Takes the instructions of one function as the master has them, and which of them
changed; says whether one of these had not tried to specialize yet. That is what a warm
up prevents. What it cannot prevent: an instruction that cannot specialize counts down
to the next try at each run, for ever.
"""

from __future__ import annotations

import sys
from collections.abc import Collection

from cowpreload.opcodes import BASES, OPCODES, cache_sizes

# Counters: a value above as many bits as say how far apart the tries are.
_APART = 7 if sys.version_info >= (3, 15) else 15


def _never_run(items, other):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Code that is read, not run: what a counter is before the first time."""
    for each in items:
        other.name = each.name + items[0]


def _first_counters() -> dict[int, int]:
    code = bytes(getattr(_never_run.__code__, "_co_code_adaptive", b""))
    return {
        code[at]: int.from_bytes(code[at + 2 : at + 4], "little")
        for at in _starts(code)
        if _SIZES[code[at]]
    }


def _starts(code: bytes) -> list[int]:
    """Where instructions begin, in bytes."""
    found, at = [], 0
    while at < len(code):
        found.append(at)
        at += 2 + 2 * _SIZES[code[at]]
    return found


_SIZES = cache_sizes()
_SPECIAL = frozenset(OPCODES[name] for name in BASES if not name.endswith("_ADAPTIVE"))
_FIRST = _first_counters()
_USUAL = _FIRST.get(OPCODES.get("LOAD_ATTR", 0), 0)
_JUMP = OPCODES.get("JUMP_BACKWARD", 0)


def was_cold(before: bytes, changed: Collection[int]) -> bool:
    """Whether a changed instruction had not tried to specialize in `before`.

    Args:
        before: a function's instructions in the master.
        changed: offsets in bytes of the units of two bytes that the worker changed.
    """
    for at in _starts(before):
        size = _SIZES[before[at]]
        if any(unit in changed for unit in range(at, at + 2 + 2 * size, 2)) and _cold(
            before, at, size, at in changed
        ):
            return True
    return False


def _cold(before: bytes, at: int, size: int, replaced: bool) -> bool:
    opcode = before[at]
    if opcode in _SPECIAL:
        return False
    if not size:
        return replaced  # it is, the first time
    counter = int.from_bytes(before[at + 2 : at + 4], "little")
    first = _FIRST.get(opcode, _USUAL)
    if opcode == _JUMP or sys.version_info < (3, 12):
        return counter == first
    return counter & _APART == first & _APART
