"""Hold strings in numpy's and pandas's ways, freeze, read each in a child of its own.

Argument: on or off. Output: a line for each way: its name, bytes of its heap, bytes of
it that the child copied.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import cowpreload
from cowpreload import _core

MANY = 40_000


def texts() -> list[str]:
    """Strings that nobody else has."""
    return [f"text number {number}" for number in range(MANY)]


def objects(*shape: int, order: Any = "C") -> Any:
    return np.array(texts(), dtype=object).reshape(*shape, order=order)


def fill(array: Any, *fields: str) -> Any:
    for field in fields:
        array[field].flat = np.array(texts(), dtype=object)[: array[field].size]
    return array


def strided() -> Any:
    """What is in between is only reached through the base."""
    return objects(-1)[::2]


def read_only() -> Any:
    array = objects(-1)
    array.flags.writeable = False
    return array


def records(scalars: bool) -> Any:
    array = fill(np.zeros(MANY, dtype=[("a", "O"), ("b", "f8")]), "a")
    return list(array) if scalars else array


def nested() -> Any:
    """Arrays that are only held by an array."""
    array = np.empty(MANY // 100, dtype=object)
    for at, part in enumerate(np.split(objects(-1), len(array))):
        array[at] = part.copy()
    return array


class Derived(np.ndarray):
    """A class of the collector's, whose methods are programs."""

    def view(self, *_: object) -> Any:
        raise RuntimeError("never to be called")

    ravel = tolist = view  # type: ignore[assignment]


def many_small() -> Any:
    return [np.array([text, None], dtype=object) for text in texts()]


WAYS: dict[str, Callable[[], Any]] = {
    "one dimension": lambda: objects(-1),
    "two dimensions": lambda: objects(200, -1),
    "columns first": lambda: objects(200, -1, order="F"),
    "strided": strided,
    "backwards": lambda: objects(-1)[::-1],
    "read only": read_only,
    "no dimension": lambda: [np.array(text, dtype=object) for text in texts()],
    "structured": lambda: records(scalars=False),
    "scalars of a structured array": lambda: records(scalars=True),
    "beside a datetime64": lambda: fill(
        np.zeros(MANY, dtype=[("when", "M8[s]"), ("a", "O")]), "a"
    ),
    "field of a field": lambda: fill(
        np.zeros(MANY, dtype=[("outer", [("x", "i2"), ("a", "O")])])["outer"], "a"
    ),
    "array in a field": lambda: fill(
        np.zeros(MANY // 4, dtype=[("a", "O", (2, 2)), ("b", "i1")]), "a"
    ),
    "unaligned": lambda: fill(np.zeros(MANY, dtype=[("b", "i1"), ("a", "O")]), "a"),
    "masked": lambda: np.ma.masked_array(objects(-1), mask=[False] * MANY),
    "derived": lambda: np.ndarray.view(objects(-1), Derived),
    "nested": nested,
    "many": many_small,
    "behind a memoryview": lambda: memoryview(objects(-1)),
    "column": lambda: pd.DataFrame({"a": objects(-1), "b": range(MANY)}),
    "categories": lambda: pd.Series(objects(-1)).astype("category"),
    "index": lambda: pd.Series(1, index=pd.Index(objects(-1))),
    "two levels": lambda: pd.Series(
        1, index=pd.MultiIndex.from_arrays([objects(-1), range(MANY)])
    ),
}


def read(held: Any) -> int:
    """Give out each string of `held` once."""
    if isinstance(held, np.ndarray) and held.dtype.names:
        return sum(read(held[name]) for name in held.dtype.names)
    if isinstance(held, np.ndarray) and held.dtype.hasobject:
        return sum(read(each) for each in np.ndarray.view(held, np.ndarray).flat)
    if isinstance(held, np.void | np.ndarray | list):
        return sum(read(each) for each in held) if isinstance(held, list) else 0
    if isinstance(held, memoryview):
        return read(held.obj)
    if isinstance(held, pd.DataFrame):
        return sum(map(len, held["a"]))
    if isinstance(held, pd.Series):
        index = held.index if held.dtype.kind == "i" else held.cat.categories
        return sum(len(str(each)) for each in getattr(index, "levels", [index])[0])
    return len(str(held))


def copied(held: Any) -> int:
    """Bytes that a child copies by reading all of `held`."""
    out, into = os.pipe()
    if os.fork() == 0:
        start = _core.take_reading().private
        read(held)
        os.write(into, b"%d" % (_core.take_reading().private - start))
        os._exit(0)
    os.wait()
    return int(os.read(out, 30))


held, sizes = {}, {}
for name, make in WAYS.items():
    before = _core.heap_size()
    held[name] = make()
    sizes[name] = _core.heap_size() - before
    read(held[name])
report = cowpreload.freeze("auto" if sys.argv[1] == "on" else "off")
assert not report.immortal.fault, report.immortal.fault
for name in WAYS:
    print(f"{name}: {sizes[name]} {copied(held[name])}")
sys.stdout.flush()
os._exit(0)
