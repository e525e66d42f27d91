"""The interpreter that runs this command, read once: what it can, and what was left on.

Gives a frozen Interpreter; never raises. The servers are expected to run the same one.
"""

from __future__ import annotations

import os
import platform
import sys
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass

from cowpreload import _offsets, collector
from cowpreload.errors import RAISED, said

# Switched on to find a fault, and forgotten; the flags of the command line besides.
DEBUG_VARIABLES = ("PYTHONMALLOC", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONDEBUG")


@dataclass(frozen=True)
class Interpreter:
    """What was read; a text is "" where there is nothing to say.

    Attributes:
        name: implementation and version.
        free_threaded: a build without the GIL.
        debug_build: configured --with-pydebug.
        dev_mode: -X dev, or PYTHONDEVMODE.
        malloc: PYTHONMALLOC.
        tracemalloc: frames kept of each allocation; 0: off.
        preloaded: LD_PRELOAD.
        immortal_why_not, freeze_why_not, why_why_not: why each cannot be done here.
    """

    name: str
    free_threaded: bool = False
    debug_build: bool = False
    dev_mode: bool = False
    malloc: str = ""
    tracemalloc: int = 0
    preloaded: str = ""
    immortal_why_not: str = ""
    freeze_why_not: str = ""
    why_why_not: str = ""

    @property
    def debugs_malloc(self) -> bool:
        """Whether each block is made larger, to find who writes beyond it."""
        default = not self.malloc or self.malloc == "default"
        hooks = self.malloc.endswith("debug") or (default and self.dev_mode)
        return hooks or (default and self.debug_build)

    @property
    def is_debugging(self) -> bool:
        """Whether something is on that costs memory and can be left off."""
        return self.debugs_malloc or self.tracemalloc > 0


def read_interpreter(environ: Mapping[str, str] | None = None) -> Interpreter:
    """This one."""
    environ = os.environ if environ is None else environ
    return Interpreter(
        name=f"{platform.python_implementation()} {platform.python_version()}",
        free_threaded="t" in getattr(sys, "abiflags", ""),
        debug_build=hasattr(sys, "gettotalrefcount"),
        dev_mode=sys.flags.dev_mode,
        malloc=environ.get("PYTHONMALLOC", ""),
        tracemalloc=tracemalloc.get_traceback_limit()
        if tracemalloc.is_tracing()
        else 0,
        preloaded=environ.get("LD_PRELOAD", ""),
        immortal_why_not=_immortal(),
        freeze_why_not=collector.WHY_NOT,
        why_why_not=_offsets.why_not(),
    )


def _immortal() -> str:
    try:
        from cowpreload.immortal import WHY_NOT
    except RAISED as error:
        return said(error)
    return WHY_NOT
