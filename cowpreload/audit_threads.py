"""The audit's threads: those of Python and of C libraries that a fork loses.

Left out are those that come back by themselves: idle ones of executors are ended before
the audit, some libraries start theirs anew when they see another pid, some by callbacks
at the fork, which uWSGI calls only when it is told to.
"""

from __future__ import annotations

import functools
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from cowpreload import origins
from cowpreload.errors import RAISED
from cowpreload.records import Finding
from cowpreload.texts import proc_lines

_ADVICE = "threads do not survive a fork; start it after the fork"
_HOOK_ADVICE = (
    "it starts anew at a fork that calls Python's callbacks; set "
    "py-call-uwsgi-fork-hooks = true, or start it after the fork"
)
_NATIVE_ADVICE = "threads do not survive a fork; first use the library after the fork"

# Packages whose threads start anew in a fork: by a look at the pid when they are next
# used, or by os.register_at_fork().
_BY_PID = ("sentry_sdk", "pymongo")
_BY_HOOK = ("opentelemetry", "ddtrace", "trio")
# C libraries that end and restart their threads by pthread_atfork() handlers.
_RESTARTING = ("openblas", "jemalloc")
_RUNTIME = ("libc", "ld-", "libpthread", "libm", "libstdc++", "libgcc_s", "libdl")
_STACK_BYTES = 1 << 16
# Partials of partials are one, but for those with attributes.
_PARTIALS = 8
# A thread that runs shows no stack. OpenBLAS's spin for 0.1 s of processor time before
# they wait, which on a loaded machine took longer than 0.2 s: strict refused numpy. So
# long all of them together are waited for, in seconds.
_PATIENCE = 2.0
_PAUSE = 0.01


def _target(thread: threading.Thread) -> Any:
    """What the thread runs: its target, or its class's own run()."""
    return getattr(thread, "_target", None) or type(thread).run


def _ask(target: Any, name: str) -> Any:
    """An attribute of anyone's object: a proxy has none, all, or raises."""
    try:
        return getattr(target, name, None)
    except RAISED:
        return None


def _package(thread: threading.Thread) -> str:
    """The package whose code the thread runs."""
    module = _ask(_target(thread), "__module__")
    if type(module) is not str or module == "threading":
        module = type(thread).__module__
    return str(module).partition(".")[0]


def _runs(thread: threading.Thread) -> str:
    """Where the code of the thread is: of what it was given, seen through partials."""
    target = _target(thread)
    for _ in range(_PARTIALS):
        # By type, and bounded: a proxy, or a mock, has any attribute, for ever.
        if issubclass(type(target), functools.partial):
            target = target.func
    code = _ask(target, "__code__")
    return origins.place(code) if type(code) is CodeType else type(target).__name__


def _inside(package: str, path: str) -> bool:
    """Whether a path is below an imported package, wherever it is installed."""
    homes = getattr(sys.modules.get(package), "__path__", ())
    return any(path.startswith(f"{home}{os.sep}") for home in homes)


def _owner(thread: threading.Thread) -> str:
    """The package that started the thread or whose code it runs, if it comes back."""
    origin = origins.of(thread)
    where = origin.where if origin is not None else ""
    for package in _BY_PID + _BY_HOOK:
        if _package(thread) == package or _inside(package, where):
            return package
    return ""


def threads(at_fork: bool) -> Iterator[Finding]:
    """Python's threads; `at_fork`: the host's forks call os.register_at_fork's."""
    running = sys._current_frames()
    for thread in threading.enumerate():
        # One without a frame is a greenlet (gevent's): the fork copies it.
        if thread is threading.main_thread() or thread.ident not in running:
            continue
        owner = _owner(thread)
        if owner and (at_fork or owner in _BY_PID):
            continue
        origin = origins.of(thread) or origins.Origin("unknown", "import")
        where = (
            f"name={thread.name} runs={_runs(thread)} started-by={origin.where} "
            f"during={origin.during}"
        )
        yield Finding("thread", where, _HOOK_ADVICE if owner else _ADVICE)


def _mappings() -> list[tuple[int, int, str, str]]:
    """Start, end, permissions and path of each mapping of this process."""
    found = []
    for line in proc_lines("/proc/self/maps"):
        fields = line.split(maxsplit=5)
        start, _, end = fields[0].partition("-")
        path = fields[5] if len(fields) > 5 else ""
        found.append((int(start, 16), int(end, 16), fields[1], path))
    return found


def _waits_in(tid: int, mappings: list[tuple[int, int, str, str]], until: float) -> str:
    """The path of the library that a thread waits in, by its stack; "" if it runs on.

    Words of the stack that point into the code of a library are return addresses, or
    were; the innermost that is not of the C runtime belongs to who waits.
    """
    while len(fields := Path(f"/proc/self/task/{tid}/syscall").read_text().split()) < 3:
        if time.monotonic() > until:
            return ""
        time.sleep(_PAUSE)
    top = int(fields[-2], 16)
    end = next((end for start, end, _, _ in mappings if start <= top < end), top)
    code = [each for each in mappings if "x" in each[2] and each[3].startswith("/")]
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        memory.seek(top)
        stack = memory.read(min(end - top, _STACK_BYTES) & ~7)
    for (word,) in struct.iter_unpack("N", stack):
        for start, end, _, path in code:
            inside = start <= word < end
            if inside and not os.path.basename(path).startswith(_RUNTIME):
                return path
    return ""


def _comes_back(name: str, path: str, at_fork: bool) -> bool:
    """Whether a native thread of this name, in this library, starts anew in a fork."""
    if any(each in f"{os.path.basename(path)} {name}" for each in _RESTARTING):
        return True
    return at_fork and any(_inside(each, path) for each in _BY_HOOK)


def native_threads(at_fork: bool) -> Iterator[Finding]:
    """Threads of C libraries, of which Python knows nothing."""
    known = {thread.native_id for thread in threading.enumerate()} | {os.getpid()}
    try:
        tids = sorted(int(name) for name in os.listdir("/proc/self/task"))
    except OSError:
        return
    unknown = [tid for tid in tids if tid not in known]
    mappings = _mappings() if unknown else []
    until = time.monotonic() + _PATIENCE
    for tid in unknown:
        try:
            name = " ".join(proc_lines(f"/proc/self/task/{tid}/comm")).strip()
        except OSError:
            continue  # it ended meanwhile
        try:
            path = _waits_in(tid, mappings, until)
        except (OSError, ValueError):
            path = ""  # a kernel that does not tell
        if _comes_back(name, path, at_fork):
            continue
        library = os.path.basename(path) or "unknown"
        where = f"name={name} library={library} tid={tid}"
        yield Finding("native-thread", where, _NATIVE_ADVICE)
