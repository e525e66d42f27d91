"""Holders: objects that hold others where the collector does not see it.

Takes, from the application, what else there is to make immortal; gives a Held, which
the walk asks. Arrays of numpy and zones of datetime are known without being told. Runs
in each interpreter of the process: must not import the native core, and imports
nothing that the application has not loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, TypeVar

from cowpreload.errors import RAISED

Source = TypeVar("Source", bound=Iterable[Any] | Callable[[], Iterable[Any]])
Inside = Callable[[Any], Iterable[Any]]
"""Takes one object; gives what it holds."""

AT_ONCE: Final = 1 << 16
"""Objects that are handed over in one list: many small lists would cost, and one of
all objects would be a second heap."""


class _Told:
    """What the application has said: until the next freeze, and (inside) for good."""

    def __init__(self) -> None:
        self.sources: list[Any] = []
        self.inside: dict[type, Inside] = {}
        self.frozen_by = 0


_told = _Told()


def shown(value: object) -> str:
    """At most 80 characters of its repr(); anyone's code, which may raise too."""
    try:
        return f"{value!r:.80}"
    except RAISED:
        return object.__repr__(value)


def _items(source: Any) -> Iterable[Any]:
    items: Iterable[Any] = source if isinstance(source, Iterable) else source()
    return items


def immortal_too(source: Source) -> Source:
    """Make the items of `source` immortal at the next freeze, and what they hold.

    For objects that only C or C++ code holds, so that no Python container leads to
    them. `source` is an iterable, or a function without parameters that gives one. It
    is held, and gone through once, right before the freeze: what comes into a container
    until then counts too. Works as a decorator. A source that fails is reported, and
    the heap is frozen without its items. Where nothing becomes immortal it is dropped
    unread; in a worker the call does nothing.

    Raises:
        TypeError: `source` is neither iterable nor callable.
    """
    if not callable(source) and not isinstance(source, Iterable):
        raise TypeError(
            f"immortal_too({shown(source)}): neither iterable nor callable; "
            "give an iterable, or a function that gives one"
        )
    if _told.frozen_by in (0, os.getpid()):
        _told.sources.append(source)
    return source


def held_by(kind: type, inside: Inside) -> None:
    """Say what objects of the class `kind`, and of those derived from it, hold.

    For a class of C or C++ that holds Python objects where the collector does not see
    it: `inside(object)` gives an iterable of what that object holds. It is called at
    each freeze, in the master, once for each object of the class that the walk meets.
    Not needed for attributes that the class declares as members (PyMemberDef), as
    msgspec's structs do.
    """
    _told.inside[kind] = inside


def release() -> None:
    """The freeze is over: the sources are the application's again."""
    _told.sources.clear()
    _told.frozen_by = os.getpid()


# A metaclass may refuse to be asked for these, or have the asked-for class built.
_mro: Final = type.__dict__["__mro__"].__get__
_name: Final = type.__dict__["__name__"].__get__


# ---- what is known without being told -----------------------------------------------


def _elements(array: Any) -> Iterator[list[Any]]:
    """The objects in an array of numpy's own class, in lists.

    Not by the buffer protocol, which refuses some structured arrays (with a datetime64
    among the fields) and leaves a description in each array that lives as long.
    """
    if not array.dtype.hasobject:
        return
    if array.dtype.names is None:
        yield array.ravel("K").tolist()
        return
    for name in array.dtype.names:
        yield from _elements(array[name])


def _numpy(numpy: Any) -> dict[type, Inside]:
    def in_array(array: Any) -> Iterable[Any]:
        # Never by methods of a subclass: they are programs.
        base = numpy.ndarray.base.__get__(array)
        plain = numpy.ndarray.view(array, numpy.ndarray)
        return chain([plain.dtype, base], *_elements(plain))

    def in_record(record: Any) -> Iterable[Any]:
        dtype, base = numpy.void.dtype.__get__(record), numpy.void.base.__get__(record)
        return chain([dtype, base], *_elements(numpy.asarray(record)))

    def in_dtype(dtype: Any) -> Iterable[Any]:
        parts = (part[0] for part in (dtype.fields or {}).values())
        return [dtype.names, dtype.base, *parts]

    return {numpy.ndarray: in_array, numpy.void: in_record, numpy.dtype: in_dtype}


def _in_zone_info(zoneinfo: Any, datetime: Any) -> Inside:
    """Names and offsets that a zone gives in this year's winter and summer."""
    year = datetime.date.today().year
    days = [datetime.datetime(year, month, 1) for month in (1, 7)]
    methods = [getattr(zoneinfo.ZoneInfo, name) for name in ("tzname", "utcoffset")]
    return lambda zone: [method(zone, day) for day in days for method in methods]


def _arrays() -> dict[type, Inside]:
    numpy: Any = sys.modules.get("numpy")
    if hasattr(numpy, "ndarray") and hasattr(numpy, "void"):
        return _numpy(numpy)
    return {}


def _zones() -> dict[type, Inside]:
    found: dict[type, Inside] = {}
    datetime: Any = sys.modules.get("datetime")
    zoneinfo: Any = sys.modules.get("zoneinfo")
    if hasattr(datetime, "timezone"):
        found[datetime.timezone] = datetime.timezone.__getinitargs__
        if hasattr(zoneinfo, "ZoneInfo"):
            found[zoneinfo.ZoneInfo] = _in_zone_info(zoneinfo, datetime)
    return found


_KNOWN: Final = {"numpy": _arrays, "datetime": _zones}
"""By the module that has to be loaded; it may be a stub of somebody's tests."""


def _lengths() -> bytes:
    """3.14 alone has instructions that must be told of immortality: native/loads.c."""
    if sys.version_info[:2] != (3, 14):
        return b""
    from cowpreload.opcodes import lengths  # needs dis, which dataclasses has loaded

    return lengths()


class Held:
    """What the walk asks: called with objects, gives what they hold, in lists.

    Attributes:
        asked: the classes about whose objects it has to be asked.
        mortal: classes whose objects stay mortal.
        lengths: of instructions, where the walk has to find its way through code.
        items: what the sources gave; handed over at the first call.
        faults: what went wrong in the application's functions, one text each.
    """

    def __init__(self, mortal: Iterable[type] = ()) -> None:
        self._inside: dict[type, Inside] = {}
        self._of_type: dict[type, list[Inside]] = {}
        self.mortal = tuple(mortal)
        self.lengths = _lengths()
        self.items: list[Any] = []
        self.faults: dict[str, str] = {}
        for module, known in _KNOWN.items():
            try:
                self._inside |= known()
            except RAISED as error:
                self._note(f"the objects of {module}", error)
        self._inside |= _told.inside
        self.asked = tuple(self._inside)
        for source in _told.sources:
            try:
                self.items.extend(_items(source))
            except RAISED as error:
                self._note(f"immortal_too({shown(source)})", error)

    def __call__(self, met: list[Any]) -> Iterator[list[Any]]:
        answer, self.items = self.items, []
        for each in met:
            try:
                for inside in self._functions(type(each)):
                    answer.extend(inside(each))
            except RAISED as error:
                self._note(f"held_by({_name(type(each))})", error)
            if len(answer) >= AT_ONCE:
                yield answer
                answer = []
        yield answer

    def _functions(self, kind: type) -> list[Inside]:
        found = self._of_type.get(kind)
        if found is None:
            mro = _mro(kind)
            found = [self._inside[base] for base in mro if base in self._inside]
            self._of_type[kind] = found
        return found

    def _note(self, where: str, error: BaseException) -> None:
        """The first fault of each function: there may be one for each object."""
        if where not in self.faults:
            self.faults[where] = f"{where}: {shown(error)}"
