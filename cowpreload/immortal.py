"""Immortality: whether this interpreter can, whether this server wants, the walk.

Takes the settings; gives the walk for `freezing.freeze()`, or why there is none.
Main interpreter only: it needs the native core.
"""

from __future__ import annotations

from typing import Any, Final

from cowpreload import _core
from cowpreload.freezing import Walk
from cowpreload.settings import Settings
from cowpreload.settings_given import why_mortal


class _Holder:
    def __init__(self, item: object) -> None:
        self.item = item


def counted(holder: Any, address: int) -> bool:
    """Whether reading `holder.item`, the object at `address`, writes its count.

    Looks while references are held: as an attribute, in a local variable, in a list, as
    an argument. Often enough that the interpreter's specialized forms run too.
    """
    before = _core.count_word(address)

    def moved(*held: object) -> bool:
        return _core.count_word(address) != before

    for _ in range(64):
        local = holder.item
        stored = [local, holder.item]
        if moved() or moved(local) or moved(stored[1], holder.item):
            return True
        del local, stored
    return moved()


def _self_check() -> str:
    """Try with one list and one string: an interpreter may have changed its rules.

    No local variable may hold them when they become immortal: 3.14 would go on counting
    that one reference.
    """
    for holder in (_Holder([None]), _Holder("".join(["c", "ow"]))):
        address = id(holder.item)
        _core.make_immortal(address)
        if counted(holder, address):
            name = type(holder.item).__name__
            return f"the self-check failed: reading an immortal {name} wrote its count"
    return ""


WHY_NOT: Final = _core.immortal_why_not() or _self_check()
"""Why no heap can be made immortal here; "" if one can."""


def plan(settings: Settings) -> tuple[Walk | None, str]:
    """The walk that these settings ask for, or None and why (for `auto`) it is off."""
    if settings.immortal == "off":
        return None, ""
    why_not = WHY_NOT or why_mortal(settings)
    return (None, why_not) if why_not else (_core.immortalize, "")
