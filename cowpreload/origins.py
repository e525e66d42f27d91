"""Origins: where each thread of the master was started, and in which warm-up request.

`record` stands in for the function by which `threading` starts a thread while the
application is loaded and warmed up; the audit asks `of`. Keeps a text for each thread
that lives and no frame.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CodeType, FrameType
from typing import Any

_LIBRARY = os.path.dirname(threading.__file__) + os.sep
_OURS = os.path.dirname(__file__) + os.sep
# What `threading` calls: until 3.12, and from 3.13 on.
_STARTERS = ("_start_new_thread", "_start_joinable_thread")


@dataclass(frozen=True)
class Origin:
    """Where `Thread.start` was called, and during what: import, or a warm-up path."""

    where: str
    during: str


_origins: weakref.WeakKeyDictionary[threading.Thread, Origin] = (
    weakref.WeakKeyDictionary()
)


def is_library(code: CodeType) -> bool:
    """Whether it is the standard library's, or ours; what is installed is neither."""
    path = code.co_filename
    if path.startswith((_OURS, "<frozen")):
        return True
    return path.startswith(_LIBRARY) and "-packages" not in path


def place(code: CodeType, line: int = 0) -> str:
    """A place in code as the findings show it."""
    return f"{code.co_filename}:{line or code.co_firstlineno}({code.co_name})"


def _origin(frame: FrameType | None) -> Origin:
    where, during = "", "import"
    while frame is not None:
        code = frame.f_code
        if not where and not is_library(code):
            where = place(code, frame.f_lineno)
        # Each request of a warm up has a frame of its name.
        if code.co_name.startswith("warmup="):
            return Origin(where or "unknown", code.co_name)
        if code.co_name.startswith("visited="):
            return Origin(where or "unknown", "warmup")  # the path is nobody's business
        if code.co_filename.startswith(os.path.join(_OURS, "warmup")):
            during = "warmup"
        frame = frame.f_back
    return Origin(where or "unknown", during)


def _start(theirs: Callable[..., Any], function: Any, *rest: Any, **named: Any) -> Any:
    thread = getattr(function, "__self__", None)
    if isinstance(thread, threading.Thread):
        _origins[thread] = _origin(sys._getframe(1))
    return theirs(function, *rest, **named)


def record() -> Callable[[], None]:
    """Begin; give the function that ends it. Twice is once."""
    for name in _STARTERS:
        theirs = getattr(threading, name, None)
        if theirs is None or isinstance(theirs, partial):
            continue
        ours = partial(_start, theirs)
        setattr(threading, name, ours)

        def end(name: str = name, theirs: Any = theirs, ours: Any = ours) -> None:
            # gevent may have put its own in our place meanwhile.
            if getattr(threading, name) is ours:
                setattr(threading, name, theirs)

        return end
    return lambda: None


def of(thread: threading.Thread) -> Origin | None:
    """Where this thread was started, if it was recorded."""
    return _origins.get(thread)
