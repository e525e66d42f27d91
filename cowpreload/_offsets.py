"""Where the fields of CPython's objects are, and where this server's Python is.

The only importer of native/_offsets, which an install may lack: `own` then gives None
and `why_not` says why. Offsets come from the compiler (native/offsets.c), so that they
hold for the version and build that this interpreter is, and for no other: `fits` says
whether another process's Python is the same.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

try:
    from cowpreload.native._offsets import ffi, lib
except ImportError as error:  # the package serves without it
    _MISSING = (
        f"cowpreload.native._offsets was not built or does not load ({error}); install "
        "again with a C compiler and this Python's headers"
    )
else:
    _MISSING = ""

_ALL = (1 << 64) - 1


@dataclass(frozen=True)
class Python:
    """An interpreter in a process: version and addresses."""

    version: int
    build: int
    type_type: int
    collector: int

    @property
    def text(self) -> str:
        """The version as people write it: 3.13.0; empty if there is none."""
        if not self.version:
            return ""
        return (
            f"{self.version >> 24}.{self.version >> 16 & 255}.{self.version >> 8 & 255}"
        )


@dataclass(frozen=True)
class Offsets:
    """In bytes; see native/offsets.h."""

    type_name: int
    type_flags: int
    type_dict: int
    str_length: int
    str_hash: int
    str_state: int
    str_ascii_data: int
    str_other_data: int
    bytes_hash: int
    set_hash: int
    tuple_hash: int
    frozendict_hash: int
    dict_keys: int
    dict_values: int
    code_size: int
    code_adaptive: int
    code_name: int
    code_filename: int
    code_line: int
    function_code: int
    function_module: int
    function_name: int
    keys_kind: int
    keys_log2_index_bytes: int
    keys_entries: int
    keys_indices: int
    frozen_head: int
    collections_pointer: int
    collections: int
    collections_apart: int
    collections_count: int
    immortal: bool  # a negative lower half of a count is never written
    count_mask: int  # the bits of an object's first word that count


def why_not() -> str:
    """Why this command knows no objects; empty if it does."""
    if _MISSING:
        return _MISSING
    text = ffi.string(lib.cow_offsets_why_not()).decode()
    major, minor = sys.version_info[:2]
    return f"this command runs Python {major}.{minor}: {text}" if text else ""


def own() -> tuple[Offsets, Python] | None:
    """Of this interpreter; None where objects are not known: see `why_not`."""
    if why_not():
        return None
    raw = ffi.new("struct cow_offsets *")
    if lib.cow_offsets(raw) != lib.COW_OK:
        return None
    names = [name for name, _ in ffi.typeof("struct cow_offsets").fields]
    given = {name: int(getattr(raw, name)) for name in names if name != "python"}
    python = python_of(raw.python)
    # From 3.14 on the upper 16 bits are flags, of which there are four.
    mask = _ALL if python.version < 0x030E0000 else _ALL & ~(15 << 48)
    return (
        Offsets(**given, immortal=python.version >= 0x030C0000, count_mask=mask),
        python,
    )


def python_of(raw: object) -> Python:
    """The record of a struct cow_python."""
    return Python(*(int(getattr(raw, name)) for name in Python.__dataclass_fields__))


def fits(ours: Python, theirs: Python) -> bool:
    """Whether our offsets are right for `theirs`.

    Structures do not change within a minor version. The collector's are internal and
    changed once, in 3.14.5, which left what is read here where it was.
    """
    return ours.version >> 16 == theirs.version >> 16 and ours.build == theirs.build
