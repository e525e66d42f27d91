"""Freeze, then say of each kind of object whether it has become immortal."""

from __future__ import annotations

import collections
import datetime
import os
import sys
import types
import zoneinfo

import cowpreload


class Heap:
    __slots__ = ("slot",)
    attribute = "of a class"

    def method(self, argument: int = 1 << 70) -> str:
        """The docstring."""

        def inner() -> str:
            return f"constant {argument}"

        return inner()


def made(text: str) -> str:
    """A string that nobody has interned."""
    return "".join(list(text))


MAPPING = {made("only a key"): 1 << 71}
UNTRACKED = (made("in an untracked tuple"), 1 << 72)
NESTED = ((made("deeper"), (1 << 73,)), b"bytes " * 3)
ZONE = datetime.timezone(datetime.timedelta(hours=2), made("name of a zone"))
TIME = datetime.datetime(
    2020, 2, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=3))
)


class Stamp(datetime.datetime):
    """As pandas's and pendulum's."""


STAMP = Stamp(2020, 2, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=4)))
BERLIN = (  # as the machine has zones, or not
    zoneinfo.ZoneInfo("Europe/Berlin")
    if "Europe/Berlin" in zoneinfo.available_timezones()
    else datetime.timezone.utc
)
RANGE = range(1 << 74, 1 << 75)
ORDERED = collections.OrderedDict({made("ordered"): 2.5})
code = Heap.method.__code__
inner = next(each for each in code.co_consts if isinstance(each, types.CodeType))
cowpreload.freeze()

KINDS = {
    "dict key": next(iter(MAPPING)),
    "dict value": next(iter(MAPPING.values())),
    "untracked tuple": UNTRACKED,
    "its string": UNTRACKED[0],
    "its number": UNTRACKED[1],
    "nested tuple": NESTED[0],
    "its string too": NESTED[0][0],
    "number in it": NESTED[0][1][0],
    "bytes": NESTED[1],
    "ordered key": next(iter(ORDERED)),
    "class": Heap,
    "class name": Heap.__name__,
    "qualified name": Heap.__qualname__,
    "slots": Heap.__slots__,
    "class attribute": Heap.attribute,
    "mro": Heap.__mro__,
    "function": Heap.method,
    "function name": Heap.method.__name__,
    "function's qualified name": Heap.method.__qualname__,
    "default": Heap.method.__defaults__,
    "code": code,
    "constants": code.co_consts,
    "names": code.co_names,
    "file name": code.co_filename,
    "inner code": inner,
    "inner name": inner.co_name,
    "line table": inner.co_linetable,
    "static type": datetime.date,
    "its dict": datetime.date.__dict__["today"],
    "exception": OSError,
    "name of a zone": ZONE.tzname(None),
    "zone of a datetime": TIME.tzinfo,
    "its offset": TIME.utcoffset(),
    "zone of a derived datetime": STAMP.tzinfo,
    "name of a ZoneInfo": BERLIN.tzname(TIME.replace(tzinfo=None)),
    "start of a range": RANGE.start,
    "module": os,
    "module's dict": os.__dict__,
}
for kind, value in KINDS.items():
    print(kind, "immortal" if sys.getrefcount(value) > 1 << 29 else "mortal")
sys.stdout.flush()
os._exit(0)
