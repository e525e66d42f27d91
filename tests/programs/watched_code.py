"""C code that watches code and functions, as a JIT does, sees hot code being laid.

Prints what it would be wrong about, if anything. The watchers are there from the start:
what they are told must be enough to know, at each moment, which code is alive and which
code a function has.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

import hot_kinds

import cowpreload

# enum PyCodeEvent and PyFunction_WatchEvent.
CODE_CREATED, CODE_DESTROYED = 0, 1
FUNCTION_CREATED, FUNCTION_DESTROYED, CODE_SET = 0, 1, 2

faults: list[str] = []
events: list[tuple[str, int, int]] = []
CodeWatcher = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
FunctionWatcher = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
)


def check(name: str, holds: object) -> None:
    if not holds:
        faults.append(name)


@CodeWatcher
def on_code(event: int, code: int) -> int:
    events.append(("destroyed" if event == CODE_DESTROYED else "created", code, 0))
    return 0


@FunctionWatcher
def on_function(event: int, function: int, given: int | None) -> int:
    if event == CODE_SET:
        events.append(("set", function, given or 0))
    return 0


def watch(name: str, callback: Any) -> None:
    add: Callable[[Any], int] = getattr(ctypes.pythonapi, name)
    assert add(callback) >= 0


functions = hot_kinds.functions()
for _ in range(40):
    before = hot_kinds.runs_everything()
watch("PyCode_AddWatcher", on_code)
watch("PyFunction_AddWatcher", on_function)
old = {id(each): id(each.__code__) for each in functions}
report = cowpreload.freeze()
now = {id(each): id(each.__code__) for each in functions}
told, events = events, []
check(report.hot.why_not, not report.hot.why_not)

alive, destroyed, has = set(), set(), {}
for what, first, second in told:
    if what == "created":
        alive.add(first)
        destroyed.discard(first)
    elif what == "destroyed":
        check("code ended twice", first not in destroyed)
        check("a function has code that has ended", first not in has.values())
        alive.discard(first)
        destroyed.add(first)
    else:
        check("a function was given code that nobody was told of", second in alive)
        has[first] = second
check("a function was given code twice", len(has) == report.hot.functions)
check("not every function was told of", sum(w == "set" for w, *_ in told) == len(has))
moved = [each for each in old if old[each] != now[each]]
check("nothing was laid", len(moved) > 8)
check("another code than told of", all(has.get(each) == now[each] for each in moved))
check("unmoved", not any(each in has for each in old if each not in moved))
check("old code lives on", all(old[each] in destroyed for each in moved))
check("more was made than was laid", len(alive) >= report.hot.codes)

if not os.fork():
    check("the answers differ", hot_kinds.runs_everything() == before)
    check("running gives functions code", not any(what == "set" for what, *_ in events))
    check("laid code has ended", not {each for _, each, _ in events} & {*now.values()})
    events.clear()
    hot_kinds.stepped.__code__ = (lambda a: a * 100).__code__
    said = ("set", id(hot_kinds.stepped), id(hot_kinds.stepped.__code__))
    check("set anew", hot_kinds.stepped(2) == 200 and said in events)
    print("; ".join(faults) or "all as told")
    sys.stdout.flush()
    os._exit(bool(faults))
_, status = os.wait()
os._exit(os.waitstatus_to_exitcode(status))
