"""The cause and the name of plain memory, from who owns it.

Takes Owners that have searched; gives (cause, label) for a Plain, and the name of a
container. What nothing points at stays unexplained, but on the heap of C: there it is
memory of C code, since Python's objects know theirs.
"""

from __future__ import annotations

import re

from cowpreload.causes import Cause
from cowpreload.why.changes import KEYS
from cowpreload.why.evidence import Plain
from cowpreload.why.fields import is_container
from cowpreload.why.heap import Pool
from cowpreload.why.objects import DICT, TYPE, UNICODE, Kind
from cowpreload.why.owners import STEPS, Owners, Referrer
from cowpreload.why.threads import FRAMES

_ALLOCATOR = re.compile(r"lib(jemalloc|tcmalloc|mimalloc)[^/]*\.so")
_PYTHON = ("python", "libpython", "uwsgi")


class Names:
    """Names for what one process's Owners found."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._objects = owners.objects
        self._heap = owners.heap
        self._known: dict[int, str] = {}

    def resolve(self, plain: Plain) -> tuple[Cause, str]:
        """What a write to plain memory means."""
        if plain.static:
            mapping = self._heap.mapping(plain.start)
            return self.static(
                self._owners.file_of(mapping, plain.start) if mapping else ""
            )
        return self._chain(plain.start, plain.offsets, STEPS)

    def static(self, file: str) -> tuple[Cause, str]:
        """Data of the interpreter, or of a library."""
        if file == FRAMES:
            return Cause.INTERPRETER, file
        if file in ("anonymous", ""):
            allocator = self._allocator()
            if allocator:
                return Cause.LIBRARY, f"anonymous memory, as {allocator} takes it"
            return Cause.UNEXPLAINED, "anonymous memory of no known format"
        if file.startswith(_PYTHON):
            return Cause.INTERPRETER, f"data of {file}"
        return Cause.LIBRARY, file

    def _allocator(self) -> str:
        """The file of an allocator instead of glibc's, whose formats are not known."""
        return next(
            (each.name for each in self._heap.mappings if _ALLOCATOR.match(each.name)),
            "",
        )

    def _chain(
        self, start: int, offsets: tuple[int, ...], steps: int
    ) -> tuple[Cause, str]:
        referrer = self._owners.best.get(start)
        if referrer is None or not steps:
            if isinstance(self._heap.place(start), Pool):
                return Cause.UNEXPLAINED, "memory that nothing points at"
            return Cause.LIBRARY, "malloc, owner not found"
        if referrer.kind is None or not referrer.node:
            if referrer.node:
                return self._chain(referrer.node, (), steps - 1)
            if referrer.rank == 9:
                return Cause.LIBRARY, f"malloc, held by {referrer.place}"
            return self.static(referrer.place)
        return self._owned(referrer, referrer.kind, offsets)

    def _owned(
        self, referrer: Referrer, kind: Kind, offsets: tuple[int, ...]
    ) -> tuple[Cause, str]:
        known = self._objects.offsets
        if kind.flags & DICT and referrer.offset == known.dict_keys:
            return self._table(referrer.node, offsets)
        if referrer.offset < -16 or (
            kind.flags & DICT and referrer.offset == known.dict_values
        ):
            return Cause.ATTRIBUTES, kind.label
        if is_container(kind):
            return Cause.STORAGE, self.name(referrer.node)
        if kind.flags & TYPE:
            if offsets == (0,):
                return Cause.REFCOUNT, KEYS
            return Cause.INTERPRETER, "types' caches"
        if kind.label in ("code", "function"):
            return Cause.SPECIALIZATION, self._objects.function_name(referrer.node)
        return Cause.LIBRARY, f"memory of {kind.label}"

    def _table(self, owner: int, offsets: tuple[int, ...]) -> tuple[Cause, str]:
        """A dict's keys: count, version, or entries."""
        if self._interned(owner):
            return Cause.INTERPRETER, "interned strings"
        if offsets == (0,):
            return Cause.REFCOUNT, KEYS
        if offsets == (8,):
            return Cause.INTERPRETER, "versions of dict keys"
        name = self.name(owner)
        if name.startswith("attributes of "):
            return Cause.ATTRIBUTES, name.removeprefix("attributes of ")
        return Cause.STORAGE, name

    def _interned(self, address: int) -> bool:
        """Whether every key is its own value, and a str."""
        objects, seen = self._objects, 0
        for key, value, _at in objects.entries(objects.keys_of(address), 200):
            if not key:
                continue
            kind = objects.at(key)
            if key != value or kind is None or not kind.flags & UNICODE:
                return False
            seen += 1
        return seen > 50

    def code(self, address: int) -> str:
        """The name of code without a file: that of a function that has it."""
        name = self._objects.function_name(address)
        referrer = self._owners.best.get(address)
        if referrer is None or referrer.kind is None or referrer.rank:
            return name
        if referrer.kind.label != "function":
            return name
        place = name[name.rfind(" (") :]
        return self._objects.full_name(referrer.node) + place

    def name(self, address: int) -> str:
        """Where a container is: `store.catalogue.CACHE`, `attributes of app.Offer`."""
        if address not in self._known:
            kind = self._objects.at(address)
            bare = kind.label if kind else "memory"
            self._known[address] = bare  # cut a circle of containers
            self._known[address] = self._name(address, bare, STEPS)
        return self._known[address]

    def _name(self, address: int, bare: str, steps: int) -> str:
        referrer = self._owners.best.get(address)
        if referrer is None or not steps:
            return bare
        kind = referrer.kind
        if kind is None:
            return self._in_table(referrer, bare, steps)
        if kind.label == "module":
            return f"module {self._module(address)}"
        if kind.flags & TYPE:
            return f"class {self._label_of_type(referrer.node)}"
        if is_container(kind) or kind.flags & DICT:
            return self._name(referrer.node, kind.label, steps - 1)
        if bare == "dict" and referrer.offset <= 16:
            return f"attributes of {kind.label}"
        return f"{bare} of {kind.label}"

    def _in_table(self, referrer: Referrer, bare: str, steps: int) -> str:
        """A value in a dict's table: the key before it names it."""
        outer = self._owners.best.get(referrer.node)
        if outer is None or outer.kind is None:
            return bare
        if not is_container(outer.kind):
            return f"{bare} of {outer.kind.label}"
        key = self._objects.text(self._objects.memory.word(referrer.at - 8))
        where = self._name(outer.node, outer.kind.label, steps - 1)
        if outer.kind.flags & DICT and key:
            for prefix in ("module ", "class ", "attributes of "):
                if where.startswith(prefix):
                    return f"{bare} {where.removeprefix(prefix)}.{key}"
        return where if where != outer.kind.label else f"{bare} in a {where}"

    def _module(self, names: int) -> str:
        for key, value, _at in self._objects.entries(self._objects.keys_of(names), 32):
            if self._objects.text(key) == "__name__":
                return self._objects.text(value)
        return "?"

    def _label_of_type(self, address: int) -> str:
        kind = self._objects.kind(address)
        return kind.label if kind else "?"
