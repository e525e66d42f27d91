"""An application whose hot code lies far apart: between functions that never run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from cowpreload import _core

if "HOT_APP_PROFILED" in os.environ:
    sys.setprofile(lambda *_: None)


class Anything:
    """Reading an attribute of it cannot be specialized."""

    def __getattr__(self, name: str) -> int:
        return 1


# A page of code of the same size around each.
CODE = "def {}(given):\n    return sum([given.one for each in range(2) if given.two])\n"
COLD = [f"cold_{i}" for i in range(15)]
ALL: list[dict[str, Callable[[Anything], int]]] = []
for _ in range(400):
    ALL.append({})
    exec("".join(map(CODE.format, [*COLD, "hot"])), ALL[-1])


HOT = [each["hot"] for each in ALL]


def run_hot() -> int:
    given = Anything()
    return sum(each(given) for each in HOT)


def application(environ, start_response):  # type: ignore[no-untyped-def]
    """By how much running it all makes the worker's private memory grow."""
    start_response("200 OK", [])
    if environ["PATH_INFO"] != "/hot":
        return [b"cold"]
    before = _core.take_reading().private
    run_hot()
    return [str(_core.take_reading().private - before).encode()]
