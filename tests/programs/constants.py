"""Code that ran before the freeze: whether loading a constant writes its count."""

from __future__ import annotations

import dis
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

import cowpreload
from cowpreload._core import count_word


class Kept:
    """A constant that stays mortal: `compile` knows none, `replace` puts it there."""


def text(look: Callable[[], object]) -> list[object]:
    return [look(), "a constant that nobody has interned", look()]


# 300 constants before the one that is looked at.
names: dict[str, Any] = {}
many = ", ".join(f"'the {number}. constant'" for number in range(300))
exec(f"def far(look): [{many}.upper()]; return [look(), 'far away', look()]", names)
far = names["far"]


def replaced(function: Any, old: object, new: object) -> Any:
    code = function.__code__
    constants = tuple(new if each == old else each for each in code.co_consts)
    return types.FunctionType(code.replace(co_consts=constants), {})


def constant(function: Any, value: object) -> object:
    return next(each for each in function.__code__.co_consts if each == value)


def said(function: Any, value: object) -> str:
    """Whether the count differs while the constant lies on the interpreter's stack."""
    address = id(constant(function, value))
    before, _constant, during = function(lambda: count_word(address))
    return "not counted" if before == during else "counted"


def instructions(functions: list[Any]) -> list[Any]:
    """What they do, however it is specialized."""
    if sys.version_info < (3, 13):
        return []
    return [
        (each.offset, each.baseopcode, each.arg)
        for function in functions
        for each in dis.get_instructions(function, adaptive=True)
    ]


held = Kept()
kept = replaced(text, "a constant that nobody has interned", held)
for _ in range(100):
    mortal = said(text, "a constant that nobody has interned")
    said(far, "far away")
    said(kept, held)
print("mortal:", mortal)

cowpreload.keep_mortal(held)
functions = [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]
before = instructions(functions[:1000])
cowpreload.freeze()
print("text:", said(text, "a constant that nobody has interned"))
print("behind an extended argument:", said(far, "far away"))
print("kept mortal:", said(kept, held))
same = before == instructions(functions[:1000])
print("instructions:", "the same" if same else "others")
