"""Lay hot code side by side: what workers write to in code is then on few pages.

Takes the main interpreter's heap, collected and not frozen yet; gives a HotReport.
An instruction that cannot specialize counts down at each run, for ever: a few bytes
each in hundreds of code objects, of which each copies its page in each worker. So the
code that the warm up has run is copied to fresh memory, one after the other, and the
copies take the place of the old code in their functions.

A copy goes on where the old one was: what the interpreter has specialized is carried
over, so that nothing runs a second time. Only code is moved whose every reference is a
function's or that of code around it: what a frame, a generator, a debugger or a table
of the application's holds stays where it is. Main interpreter only: it needs the
native core.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any

from cowpreload import code_objects
from cowpreload.errors import RAISED, said
from cowpreload.records import HotReport

# What CodeType.replace() would ask of the old code, and keep there, between the copies.
_ASKED_BY_REPLACE = attrgetter("co_code", "co_varnames", "co_cellvars", "co_freevars")
_TRACERS = (sys.gettrace, sys.getprofile, threading.gettrace, threading.getprofile)
_TOOLS = range(6)  # of sys.monitoring


@dataclass(frozen=True)
class Plan:
    """What is to be laid.

    Attributes:
        codes: by id(), in the order in which the copies are to lie.
        functions: that have it, by id() of the code.
    """

    codes: dict[int, CodeType]
    functions: dict[int, list[FunctionType]]


class _Loading:
    """What had run before the warm up.

    Attributes:
        ran: id() of code to the hash of its instructions then.
    """

    def __init__(self) -> None:
        self.ran: dict[int, int] = {}

    def knows(self, code: CodeType) -> bool:
        """Whether it has written nothing since."""
        return self.ran.get(id(code)) == _written(code)


_loading = _Loading()


def _functions() -> list[FunctionType]:
    return [each for each in gc.get_objects() if type(each) is FunctionType]


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if type(each) is CodeType]


def _every_code(functions: Iterable[FunctionType]) -> Iterator[CodeType]:
    """Their code, and all that is nested in it; what several have comes repeatedly."""
    pending = [each.__code__ for each in functions]
    while pending:
        code = pending.pop()
        yield code
        pending += _nested(code)


def _written(code: CodeType) -> int:
    return hash(getattr(code, "_co_code_adaptive", b""))


def begin() -> None:
    """The application is loaded and its warm up begins: remember what has run so far.

    Only what changes from here on is hot. Without this call, all that has ever run is.
    Raises nothing.
    """
    _loading.ran = {}
    with contextlib.suppress(*RAISED):
        look = code_objects.state_of()
        if look is not None:
            _loading.ran = {
                id(code): _written(code)
                for code in _every_code(_functions())
                if look(code) in code_objects.HAVE_RUN
            }


def _count(codes: dict[int, CodeType], key: int) -> int:
    """References to a code object that this dict holds, its own and ours among them."""
    return sys.getrefcount(codes[key])


def _own_references() -> int:
    """What `_count` gives for code that nobody else holds."""
    codes = {0: _own_references.__code__.replace()}
    return _count(codes, 0)


def _running_code_is_counted() -> bool:
    """Whether a frame holds its code, so that counting tells of it."""

    def inner() -> int:
        return sys.getrefcount(inner.__code__)

    return inner() > sys.getrefcount(inner.__code__)


def why_not() -> str:
    """Why no code may be moved in this process, or ""."""
    if code_objects.state_of() is None:
        return "the code of this interpreter is not known (CPython 3.12 to 3.15 is)"
    if any(get() for get in _TRACERS):
        return "the process is being traced or profiled"
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring and any(monitoring.get_tool(each) for each in _TOOLS):
        return "a tool uses sys.monitoring"
    jit = getattr(sys, "_jit", None)
    if jit is not None and jit.is_enabled():
        return "CPython's JIT is on: it may know the addresses of code"
    if not _running_code_is_counted():
        return "frames do not count the code that they run"
    return ""


class _Heap:
    """The functions of this process, their code, and what is nested in what."""

    def __init__(self) -> None:
        look = code_objects.state_of()
        assert look is not None
        self._look = look
        self._own = _own_references()
        self._functions = _functions()
        self._codes: dict[int, CodeType] = {}  # by id(), what may be moved
        self._users: dict[int, list[FunctionType]] = {}
        self._movable: dict[int, bool] = {}
        self._ticking: list[int] = []
        self._settled: list[int] = []
        # id() of code to that of the code around it, with how often it is in there.
        self._around: dict[int, dict[int, int]] = {}
        for code in _every_code(self._functions):
            for each in _nested(code):
                around = self._around.setdefault(id(each), {})
                around[id(code)] = sum(other is each for other in code.co_consts)
            state = look(code)
            if state == code_objects.COMPILED:
                raise RuntimeError("CPython's JIT has compiled code")
            if state in code_objects.HAVE_RUN and not _loading.knows(code):
                ticks = state == code_objects.TICKING
                (self._ticking if ticks else self._settled).append(id(code))

    def _wanted(self) -> dict[int, None]:
        """Hot code, what counts down first; then the code around it.

        An outer function makes inner ones of the code that is in its own.
        """
        wanted = dict.fromkeys(self._ticking + self._settled)
        pending = list(wanted)
        while pending:
            outer = self._around.get(pending.pop(), {})
            pending += [each for each in outer if each not in wanted]
            wanted |= dict.fromkeys(outer)
        return wanted

    def plan(self) -> Plan:
        """What can be moved: nothing holds it but functions and the code around it."""
        wanted = self._wanted()
        for code in _every_code(self._functions):
            if id(code) in wanted:
                self._codes[id(code)] = code
        del code
        for function in self._functions:
            if id(function.__code__) in wanted:
                self._users.setdefault(id(function.__code__), []).append(function)
        order = [key for key in wanted if self._may_move(key)]
        return Plan(
            {key: self._codes[key] for key in order},
            {key: self._users[key] for key in order if key in self._users},
        )

    def _may_move(self, key: int) -> bool:
        if key not in self._movable:
            around = self._around.get(key, {})
            known = len(self._users.get(key, ())) + sum(around.values())
            self._movable[key] = (
                all(map(self._may_move, around))
                and self._look(self._codes[key]) in code_objects.CAN_MOVE
                and _count(self._codes, key) == self._own + known
            )
        return self._movable[key]


def _copy(key: int, plan: Plan, copies: dict[int, CodeType]) -> CodeType:
    """A copy of one code object, with copies of what is nested in it."""
    if key not in copies:
        code = plan.codes[key]
        if any(id(each) in plan.codes for each in _nested(code)):
            copies[key] = code.replace(
                co_consts=tuple(
                    _copy(id(each), plan, copies)
                    if type(each) is CodeType and id(each) in plan.codes
                    else each
                    for each in code.co_consts
                )
            )
        else:
            copies[key] = code.replace()
        code_objects.carry(code, copies[key])
    return copies[key]


def _put(plan: Plan, copies: dict[int, CodeType]) -> HotReport:
    """Let the functions have the copies."""
    done, refused = 0, ""
    for key, functions in plan.functions.items():
        for function in functions:
            if function.__code__ is not plan.codes[key]:
                continue  # another thread has set it since
            if not code_objects.set_code(function, copies[key]):
                refused = f"{function.__qualname__}.__code__ cannot be set"
                break
            done += 1
        if refused:
            break
    if not done:
        return HotReport(why_not=refused)
    size = sum(each.__sizeof__() for each in copies.values())
    return HotReport(len(copies), done, size, refused)


def lay(fill: Callable[[], bool]) -> HotReport:
    """Copy hot code, and let its functions have the copies. Raises nothing.

    Args:
        fill: fills the holes of the heap, so that what is allocated next is from fresh
            memory; whether it could.
    """
    try:
        cause = why_not()
        if cause:
            return HotReport(why_not=cause)
        plan = _Heap().plan()
        for code in plan.codes.values():
            _ASKED_BY_REPLACE(code)
        if not fill():
            return HotReport(why_not="the holes of the heap cannot be filled")
        copies: dict[int, CodeType] = {}
        for key in plan.codes:
            _copy(key, plan, copies)
        return _put(plan, copies)
    except RAISED as error:
        return HotReport(why_not=said(error))
    finally:
        _loading.ran = {}
