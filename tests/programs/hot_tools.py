"""An application that answers what a tool, started in a worker, sees of hot code.

Each answer is JSON, the same whether hot_kinds' code was laid or not.
"""

from __future__ import annotations

import io
import json
import os
import pdb
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

import hot_kinds

FILE = str(hot_kinds.__file__)
OLD = [id(each.__code__) for each in hot_kinds.functions()]
Seen = list[tuple[Any, ...]]


def moved() -> int:
    """Functions whose code is another than when they were made."""
    now = [id(each.__code__) for each in hot_kinds.functions()]
    return sum(one != other for one, other in zip(OLD, now, strict=True))


def coverage(core: str) -> list[Any]:
    """The core that coverage.py has used, and the lines that it reports."""
    from coverage import Coverage

    os.environ["COVERAGE_CORE"] = core
    measured = Coverage(data_file=None, config_file=False, include=[FILE])
    with measured.collect():
        hot_kinds.runs_everything()
        used = dict(measured.sys_info())["core"]
    return [used, sorted(measured.get_data().lines(FILE) or ())]


def breakpoint_(**backend: str) -> str:
    """What pdb prints at a breakpoint, one step on, and at the end."""
    commands = io.StringIO("p ('a is', a)\nnext\np ('b is', b)\ncontinue\n")
    shown = io.StringIO()
    debugger = pdb.Pdb(stdin=commands, stdout=shown, nosigint=True, **backend)  # type: ignore[arg-type]
    first = hot_kinds.stepped.__code__.co_firstlineno
    assert debugger.set_break(FILE, first + 1) is None
    debugger.runcall(hot_kinds.stepped, 4)
    debugger.clear_all_breaks()
    return shown.getvalue()


def _is_ours(code: CodeType) -> bool:
    return code.co_filename == FILE


def traced() -> Seen:
    """Each event of sys.settrace, instructions among them."""
    seen: Seen = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if _is_ours(frame.f_code):
            frame.f_trace_opcodes = True
            seen.append((event, frame.f_code.co_qualname, frame.f_lineno))
        return trace

    sys.settrace(trace)
    hot_kinds.runs_everything()
    sys.settrace(None)
    return seen


def profiled() -> Seen:
    seen: Seen = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if _is_ours(frame.f_code):
            seen.append((event, frame.f_code.co_qualname, frame.f_lineno))

    sys.setprofile(profile)
    hot_kinds.runs_everything()
    sys.setprofile(None)
    return seen


def monitored(everywhere: bool) -> Seen:
    """Each event of sys.monitoring, in all code or in one function's."""
    seen: Seen = []
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    events = monitoring.events
    wanted = 0
    monitoring.use_tool_id(4, "test")
    for name in ("PY_START", "PY_RETURN", "PY_YIELD", "LINE", "INSTRUCTION", "JUMP"):
        event = getattr(events, name)
        wanted |= event

        def note(code: CodeType, at: Any, *_: Any, name: str = name) -> None:
            if _is_ours(code):
                seen.append((name, code.co_qualname, at))

        monitoring.register_callback(4, event, note)
    if everywhere:
        monitoring.set_events(4, wanted)
    else:
        monitoring.set_local_events(4, hot_kinds.stepped.__code__, wanted)
    hot_kinds.runs_everything()
    monitoring.set_events(4, 0)
    monitoring.set_local_events(4, hot_kinds.stepped.__code__, 0)
    monitoring.free_tool_id(4)
    return seen


def in_a_thread() -> Seen:
    """A thread of the worker's that is traced while another runs the same code."""
    found: Seen = []
    thread = threading.Thread(target=lambda: found.extend(traced()))
    thread.start()
    hot_kinds.stepped(1)
    thread.join()
    return found


ANSWERS: dict[str, Callable[[], Any]] = {
    "": lambda: [repr(hot_kinds.runs_everything()) for _ in range(20)][-1],
    "moved": moved,
    "coverage-ctrace": lambda: coverage("ctrace"),
    "coverage-sysmon": lambda: coverage("sysmon"),
    "pdb": breakpoint_,
    "pdb-monitoring": lambda: breakpoint_(backend="monitoring"),
    "traced": traced,
    "traced-thread": in_a_thread,
    "profiled": profiled,
    "monitored": lambda: monitored(everywhere=True),
    "monitored-function": lambda: monitored(everywhere=False),
}


def application(environ, start_response):  # type: ignore[no-untyped-def]
    found = ANSWERS[environ["PATH_INFO"].strip("/")]()
    start_response("200 OK", [])
    return [json.dumps(found).encode()]
