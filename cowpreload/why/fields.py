"""Which cause a changed field of an object speaks for. Pure.

Takes a type and an offset from the object's start; gives a cause, or None where the
field never changes while the object lives: then the memory was freed and used again.
"""

from __future__ import annotations

from cowpreload._offsets import Offsets
from cowpreload.causes import Cause
from cowpreload.why.objects import BYTES, DICT, LIST, TUPLE, TYPE, UNICODE, Kind

CONTAINERS = frozenset(
    {
        "set",
        "frozenset",
        "bytearray",
        "array.array",
        "collections.deque",
        "collections.OrderedDict",
    }
)
_IMMUTABLE = frozenset(
    {"int", "float", "complex", "bool", "NoneType", "range", "slice"}
)
_CODE = frozenset({"code", "function", "method"})


def is_container(kind: Kind) -> bool:
    """Whether its objects keep items in storage of their own."""
    return bool(kind.flags & (LIST | DICT)) or kind.label in CONTAINERS


def cause_of(kind: Kind, offset: int, offsets: Offsets) -> Cause | None:
    """What a write `offset` bytes after the start of an object of `kind` means."""
    if offset < -16:
        return Cause.ATTRIBUTES  # the managed dict or weak references
    if offset < 0:
        return Cause.COLLECTOR
    if offset == 0:
        return Cause.REFCOUNT
    if offset == 8:
        return Cause.ATTRIBUTES  # its class was set
    if kind.flags & UNICODE:
        return _of_str(offset, offsets)
    if kind.flags & BYTES:
        return Cause.HASH if offset == offsets.bytes_hash else None
    if kind.label == "frozenset" and offset == offsets.set_hash:
        return Cause.HASH
    if kind.flags & TUPLE and offset == offsets.tuple_hash:
        return Cause.HASH
    if kind.label == "frozendict" and offset == offsets.frozendict_hash:
        return Cause.HASH
    if kind.flags & TUPLE or kind.label in _IMMUTABLE:
        return None
    if is_container(kind):
        return Cause.STORAGE
    if kind.flags & TYPE:
        return Cause.INTERPRETER  # version tags and caches
    if kind.label in _CODE:
        return Cause.SPECIALIZATION
    return Cause.ATTRIBUTES


def _of_str(offset: int, offsets: Offsets) -> Cause | None:
    if offset == offsets.str_hash:
        return Cause.HASH
    if offset == offsets.str_state:
        return Cause.INTERPRETER  # it was interned
    if offsets.str_ascii_data <= offset < offsets.str_other_data:
        return Cause.HASH  # the UTF-8 form; in an ASCII string, text: see `changes`
    return None
