"""Kinds of code, all of which `runs_everything` runs. Imported by moved_code.py: the
code of a module that is not running any more is gone, and holds none of these."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import traceback
from collections.abc import Callable, Iterator
from typing import Any


def fails(given: Any) -> int:
    try:
        return int(given.missing)
    except AttributeError as error:
        raise LookupError("here") from error
    finally:
        given = None


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named) + 0

    return call


@logged
def wrapped(a: int, *, b: int = 2) -> int:
    return a + b


@logged
def wrapped_too(a: int) -> int:
    return a * 2


def makes(start: int) -> Callable[[], int]:
    count = start

    def inner() -> int:
        nonlocal count
        count += 1
        return (lambda: count)()

    return inner


class Shape:
    sides = 3

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def double(self) -> int:
        return self.size * 2

    @classmethod
    def named(cls) -> str:
        return cls.__name__

    @staticmethod
    def plain(a: int) -> int:
        return a

    def __getitem__(self, key: int) -> int:
        return key + self.size


class Square(Shape):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.sides = 4


def counts(to: int) -> Iterator[int]:
    count = 0
    while count < to:
        yield count
        count += 1


async def waits(a: int) -> int:
    await asyncio.sleep(0)
    return a + 1


async def agen(to: int):  # type: ignore[no-untyped-def]
    for i in range(to):
        yield i


async def gathers() -> list[int]:
    async with contextlib.AsyncExitStack():
        return [await waits(each) async for each in agen(3)]


def held_by_a_table() -> int:
    return 1


def weakly_known() -> int:
    return 2


def tagged() -> int:
    return 3


def counted_by_a_tool() -> int:
    return 4


def stepped(a: int) -> int:
    b = a + 1
    return b


def runs_everything() -> list[Any]:
    square = Square(2)
    try:
        fails(square)
    except LookupError as error:
        said = traceback.format_exception(error)
    return [
        said,
        wrapped(1, b=3),
        wrapped_too(4),
        makes(4)(),
        square.double + square[1] + square.sides + Square.plain(1),
        Square.named(),
        list(counts(4)),
        asyncio.run(gathers()),
        held_by_a_table(),
        weakly_known(),
        tagged(),
        counted_by_a_tool(),
        stepped(1),
    ]


def functions() -> list[Any]:
    return [
        fails,
        wrapped.__wrapped__,  # type: ignore[attr-defined]
        wrapped,
        makes,
        Shape.__init__,
        Shape.double.fget,
        Shape.named.__func__,  # type: ignore[attr-defined]
        Square.__init__,
        counts,
        waits,
        gathers,
        stepped,
    ]
