"""What an address of another process holds: types, objects, names.

Takes a Memory and Offsets. Believes nothing that it reads: an object is one if its
type is a type, up to `type` itself, and if its count can be a count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from cowpreload._offsets import Offsets
from cowpreload.texts import printable
from cowpreload.why.process import BLOCK, Memory

# Bits of tp_flags; the same in all versions that Offsets know.
PREHEADER, HEAP_TYPE, HAVE_GC = 3 << 3, 1 << 9, 1 << 14
LIST, TUPLE, BYTES, UNICODE, DICT, TYPE = (
    1 << 25,
    1 << 26,
    1 << 27,
    1 << 28,
    1 << 29,
    1 << 31,
)
_USER = 1 << 47  # addresses of a process are below
_COUNTS = 1 << 40  # counts too, immortal ones included
_SHOWN = 60
_LIBRARY = re.compile(r".*/(?:(?:site|dist)-packages|lib/python3\.\d+)/")
_SHARED_KEYS = 30


@dataclass(frozen=True)
class Kind:
    """A type: what its objects look like.

    Attributes:
        header: bytes before an object: the collector's header, the managed dict.
    """

    address: int
    name: str
    module: str
    flags: int
    header: int

    @property
    def label(self) -> str:
        """`module.name`, or the bare name of a builtin."""
        return self.name if self.module == "builtins" else f"{self.module}.{self.name}"


class Objects:
    """The objects of one process."""

    def __init__(self, memory: Memory, offsets: Offsets, type_type: int) -> None:
        self.memory, self.offsets = memory, offsets
        self._type_type, self._mask = type_type, offsets.count_mask
        self._kinds: dict[int, Kind | None] = {}
        self.text = lru_cache(4096)(self._text)

    def kind(self, address: int) -> Kind | None:
        """The type at `address`, if there is one."""
        if not 4096 <= address < _USER or address & 7:
            return None
        try:
            return self._kinds[address]
        except KeyError:
            self._kinds[address] = None  # a chain of types that never ends is none
            found = self._kinds[address] = self._read_kind(address)
            return found

    def _read_kind(self, address: int) -> Kind | None:
        memory, offsets = self.memory, self.offsets
        meta = memory.word(address + 8)
        if not self.counted(address):
            return None
        if address != self._type_type and meta != self._type_type:
            of_type = self.kind(meta)
            if of_type is None or not of_type.flags & TYPE:
                return None
        flags = memory.word(address + offsets.type_flags)
        name = memory.text(memory.word(address + offsets.type_name))
        module, _, bare = name.rpartition(".")
        if flags & HEAP_TYPE:
            module, bare = self._module(address) or module, bare or name
        header = (16 if flags & HAVE_GC else 0) + (16 if flags & PREHEADER else 0)
        return Kind(address, bare, module or "builtins", flags, header)

    def _module(self, type_address: int) -> str:
        names = self.memory.word(type_address + self.offsets.type_dict)
        if not 4096 <= names < _USER:
            return ""
        for key, value, _at in self.entries(self.keys_of(names)):
            if self.text(key) == "__module__":
                return self.text(value)
        return ""

    def counted(self, address: int) -> bool:
        """Whether the word at `address` can be the count of a living object."""
        return 0 < self.memory.word(address) & self._mask < _COUNTS

    def mortal(self, address: int) -> bool:
        """Whether reading the object at `address` writes its count."""
        return not (self.offsets.immortal and self.memory.word(address) & 0x80000000)

    def in_block(self, start: int, size: int) -> tuple[int, Kind] | None:
        """The object, and its type, that an allocation of `size` bytes begins with."""
        view, at = self.memory.words(start), (start & (BLOCK - 1)) >> 3
        if at + 6 > len(view):  # it goes on in the next piece
            view = memoryview(self.memory.read(start, 48)).cast("Q")
            at = 0
        kinds, mask = self._kinds, self._mask
        for header, word in ((0, view[at + 1]), (16, view[at + 3]), (32, view[at + 5])):
            if header + 16 > size:
                break
            kind = kinds[word] if word in kinds else self.kind(word)
            if (
                kind
                and kind.header == header
                and 0 < view[at + header // 8] & mask < _COUNTS
            ):
                return start + header, kind
        return None

    def at(self, address: int) -> Kind | None:
        """The type of the object at `address`, if there is an object."""
        if not 4096 <= address < _USER or address & 7:
            return None
        kind = self.kind(self.memory.word(address + 8))
        return kind if kind and self.counted(address) else None

    def _text(self, address: int) -> str:
        """The str at `address`, cut; empty if there is none."""
        kind = self.at(address)
        if kind is None or not kind.flags & UNICODE:
            return ""
        offsets, memory = self.offsets, self.memory
        state = memory.word(address + offsets.str_state)
        if not state >> 5 & 1:  # not compact
            return ""
        width = state >> 2 & 7
        start = offsets.str_ascii_data if state >> 6 & 1 else offsets.str_other_data
        length = min(memory.word(address + offsets.str_length), _SHOWN * 4)
        coding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(width, "latin-1")
        found = memory.read(address + start, length * width)
        return printable(found.decode(coding, "replace"))

    def keys_of(self, dict_address: int) -> int:
        """The address of a dict's keys."""
        return self.memory.word(dict_address + self.offsets.dict_keys)

    def entries(self, keys: int, most: int = 4096) -> Iterator[tuple[int, int, int]]:
        """(key, value, address of the value's word) of a dict's keys."""
        if not 4096 <= keys < _USER or keys & 7:
            return
        offsets, memory = self.offsets, self.memory
        head = memory.read(keys + offsets.keys_log2_index_bytes, 2)
        log2, general = head[0], head[1] == 0
        count = min(memory.word(keys + offsets.keys_entries), most)
        if log2 > 32:
            return
        at = keys + offsets.keys_indices + (1 << log2)
        size = 24 if general else 16
        for entry in range(at + size - 16, at + size - 16 + count * size, size):
            yield memory.word(entry), memory.word(entry + 8), entry + 8

    def are_keys(self, start: int, size: int) -> bool:
        """Whether a block of plain memory is the keys of a dict or of a class.

        The room that is left and the entries make up two thirds of the table's size,
        or 30, the most for attributes (Objects/dictobject.c).
        """
        offsets, memory = self.offsets, self.memory
        if size < offsets.keys_indices + 8 or not self.counted(start):
            return False
        head = memory.word(start + 8)
        log2, log2_bytes, kind = head & 255, head >> 8 & 255, head >> 16 & 255
        if not 3 <= log2 <= 40 or not log2 <= log2_bytes <= log2 + 3 or kind > 2:
            return False
        room = memory.word(start + 16) + memory.word(start + offsets.keys_entries)
        return room in ((2 << log2) // 3, _SHARED_KEYS)

    def function_name(self, code: int) -> str:
        """`name (path:line)` of a code object; libraries' paths from their root on."""
        memory, offsets = self.memory, self.offsets
        name = self.text(memory.word(code + offsets.code_name))
        path = self.text(memory.word(code + offsets.code_filename))
        line = int.from_bytes(memory.read(code + offsets.code_line, 4), "little")
        return f"{name} ({_LIBRARY.sub('', path)}:{line})" if path else name

    def is_generated(self, code: int) -> bool:
        """Whether the file of a code object is none: `<string>` and the like."""
        path = self.text(self.memory.word(code + self.offsets.code_filename))
        return path.startswith("<")

    def full_name(self, function: int) -> str:
        """`module.name` of a function object."""
        names = (
            self.text(self.memory.word(function + at))
            for at in (self.offsets.function_module, self.offsets.function_name)
        )
        return ".".join(each for each in names if each)
