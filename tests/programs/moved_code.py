"""Code that was laid side by side does what it did; prints what differs, if anything.

Everything here has run before the freeze, some of it is under way, and it runs again
behind it.
"""

from __future__ import annotations

import asyncio
import bdb
import ctypes
import dis
import inspect
import marshal
import os
import pickle
import sys
import threading
import weakref
from types import CodeType
from typing import Any

from hot_kinds import (
    counted_by_a_tool,
    counts,
    functions,
    held_by_a_table,
    makes,
    runs_everything,
    stepped,
    tagged,
    waits,
    weakly_known,
    wrapped,
    wrapped_too,
)

import cowpreload

faults: list[str] = []


def check(name: str, holds: object) -> None:
    if not holds:
        faults.append(name)


def facts(code: CodeType) -> tuple[Any, ...]:
    return (
        code.replace(),  # equal by value; the code itself would be held
        hash(code),
        code.co_code,
        code.co_flags,
        list(code.co_lines()),
        list(code.co_positions()),
        code.co_exceptiontable,
        code.co_qualname,
        code.co_freevars,
        code.co_cellvars,
    )


for _ in range(40):
    before = runs_everything()
table = {held_by_a_table.__code__: "known"}
weak = weakref.ref(weakly_known.__code__)
index = ctypes.pythonapi.PyUnstable_Eval_RequestCodeExtraIndex(None)
ctypes.pythonapi.PyUnstable_Code_SetExtra(
    ctypes.py_object(tagged.__code__), ctypes.c_ssize_t(index), ctypes.c_void_p(4242)
)
closure = makes(10)
closure()
under_way = counts(5)
next(under_way)
coroutine = waits(6)
# Last: on 3.14 and newer, all code that runs after it has data of its own.
monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
monitoring.use_tool_id(3, "gone by the freeze")
monitoring.set_local_events(3, counted_by_a_tool.__code__, monitoring.events.LINE)
counted_by_a_tool()
monitoring.set_local_events(3, counted_by_a_tool.__code__, 0)
monitoring.free_tool_id(3)
given = {each.__code__.co_qualname: facts(each.__code__) for each in functions()}
theirs = (
    held_by_a_table,
    weakly_known,
    tagged,
    counted_by_a_tool,
    counts,
    waits,
)
stay = [id(each.__code__) for each in theirs]
ids = {each.__code__.co_qualname: id(each.__code__) for each in functions()}
entered, leave = threading.Event(), threading.Event()


def in_a_thread() -> int:
    entered.set()
    leave.wait(30)
    return stepped(5)


thread = threading.Thread(target=in_a_thread)
thread.start()
entered.wait(30)
running_code = id(in_a_thread.__code__)

report = cowpreload.freeze(immortal=sys.argv[1])

leave.set()
thread.join()
if report.hot.why_not:
    print(report.hot.why_not)
    os._exit(1)
check("nothing was laid", report.hot.codes > 20)
check("more codes than functions", report.hot.functions > report.hot.codes / 2)
now = {each.__code__.co_qualname: id(each.__code__) for each in functions()}
moved = [name for name in ids if ids[name] != now[name]]
unmoved = ["counts", "waits"]  # a generator and a coroutine are under way
check(f"moved {moved}", sorted({*ids} - {*moved}) == sorted(unmoved))
check("what others hold has moved", stay == [id(each.__code__) for each in theirs])
check("running code has moved", id(in_a_thread.__code__) == running_code)
check("a table lost its key", table[held_by_a_table.__code__] == "known")
check("a weak reference died", weak() is weakly_known.__code__)
for each in functions():
    name = each.__code__.co_qualname
    old, new = given.pop(name), facts(each.__code__)
    check(f"{name} differs", old == new)
check("two wrappers, two codes", wrapped.__code__ is wrapped_too.__code__)
check(
    "code made from now on is another",
    makes(1).__code__ is closure.__code__
    and any(each is closure.__code__ for each in makes.__code__.co_consts),
)
check("the answers differ", runs_everything() == before)
check("the closure forgot", closure() == 12)
check("the generator forgot", list(under_way) == [1, 2, 3, 4])
check("the coroutine forgot", asyncio.run(coroutine) == 7)
check("source", "b = a + 1" in inspect.getsource(stepped))
check("pickle", pickle.loads(pickle.dumps(stepped)) is stepped)
check("marshal", marshal.loads(marshal.dumps(stepped.__code__)) == stepped.__code__)
check("dis", "RESUME" in dis.Bytecode(stepped, adaptive=True).dis())


# ---- who watches code from now on -----------------------------------------------

lines: list[int] = []


def trace(frame: Any, event: str, argument: Any) -> Any:
    if frame.f_code is stepped.__code__ and event == "line":
        lines.append(frame.f_lineno - frame.f_code.co_firstlineno)
    return trace


sys.settrace(trace)
stepped(1)
sys.settrace(None)
check(f"traced lines {lines}", lines == [1, 2])

calls: list[str] = []


def profile(frame: Any, event: str, argument: Any) -> None:
    if event == "call":
        calls.append(frame.f_code.co_name)


sys.setprofile(profile)
runs_everything()
sys.setprofile(None)
check("profiled calls", {"stepped", "inner", "fails"} <= {*calls})

seen: list[int] = []
monitoring.use_tool_id(3, "test")
monitoring.register_callback(
    3, monitoring.events.LINE, lambda c, line: seen.append(line)
)
monitoring.set_local_events(3, stepped.__code__, monitoring.events.LINE)
stepped(1)
monitoring.set_local_events(3, stepped.__code__, 0)
monitoring.free_tool_id(3)
first = stepped.__code__.co_firstlineno
check(f"monitored lines {seen}", seen == [first + 1, first + 2])


class Debugger(bdb.Bdb):
    stops = 0

    def user_line(self, frame: Any) -> None:
        self.stops += frame.f_code is stepped.__code__
        self.set_continue()


debugger = Debugger()
debugger.set_break(stepped.__code__.co_filename, first + 1)
debugger.runcall(stepped, 1)
check("the debugger did not stop", debugger.stops == 1)
stepped.__code__ = (lambda a: a * 100).__code__
check("set anew", stepped(2) == 200)

print("; ".join(faults) or "all as before")
sys.stdout.flush()
os._exit(bool(faults))
