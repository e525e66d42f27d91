"""What a worker imports by itself: which module, from where, during what, and its cost.

Stands in for the function by which the interpreter finds a module that is not loaded,
in a process that measures and then ends; it is never put back. An import inside of
another is a part of that.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from cowpreload import origins
from cowpreload.trial_child import private_memory

# Both the import statement and importlib.import_module() come by here.
_FIND = "_find_and_load"


@dataclass(frozen=True)
class Import:
    """One that was asked for when its module was not loaded.

    Attributes:
        bytes: of private memory that it took, with all that it imported itself.
        where: the line of code that asked, outside of the standard library.
        path: of the page that was requested.
    """

    module: str
    bytes: int
    where: str
    path: str


class Imports:
    """Those of this process, from now on.

    Attributes:
        path: of the page that is requested now; the caller sets it.
    """

    def __init__(self) -> None:
        self.found: list[Import] = []
        self.path = ""
        self._inside = threading.local()
        system: Any = sys.modules["_frozen_importlib"]
        self._theirs: Callable[..., Any] = getattr(system, _FIND)
        setattr(system, _FIND, self._find)

    def _find(self, name: str, *rest: Any) -> Any:
        with self._measured(name):
            return self._theirs(name, *rest)

    @contextmanager
    def _measured(self, name: str) -> Iterator[None]:
        if getattr(self._inside, "now", False):
            yield
            return
        self._inside.now = True
        where, before = _caller(sys._getframe(3)), private_memory()
        try:
            yield
        finally:
            self._inside.now = False
            grown = max(0, private_memory() - before)
            self.found.append(Import(name, grown, where, self.path))


def _caller(frame: FrameType | None) -> str:
    while frame is not None:
        code = frame.f_code
        if not origins.is_library(code):
            return origins.place(code, frame.f_lineno)
        frame = frame.f_back
    return "unknown"
