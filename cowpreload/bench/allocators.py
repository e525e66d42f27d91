"""The allocators that the bench compares: how each is put below an interpreter.

Takes what is installed; gives variables of the environment. A library is preloaded by
its short name, which the loader finds; `loaded` tells whether it did.
"""

from __future__ import annotations

import ctypes.util
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Allocator:
    """One of them.

    Attributes:
        name: short, for tables.
        about: one line for the docs.
        libraries: names for the linker, one of which is preloaded; none: glibc's.
        package: of Debian, that has it.
        settings: further variables of the environment.
    """

    name: str
    about: str
    libraries: tuple[str, ...] = ()
    package: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    def library(self) -> str:
        """The file that is to be preloaded; "" if there is none."""
        found = map(ctypes.util.find_library, self.libraries)
        return next((each for each in found if each), "")

    def missing(self) -> str:
        """What to install, or ""."""
        return self.package if self.libraries and not self.library() else ""

    def environ(self) -> tuple[tuple[str, str], ...]:
        """What a server is started with."""
        if not self.libraries:
            return self.settings
        return (("LD_PRELOAD", self.library()), *self.settings)


_ALONE = (("PYTHONMALLOC", "malloc"),)
_JEMALLOC = ("jemalloc",), "libjemalloc2"
_TCMALLOC = ("tcmalloc_minimal", "tcmalloc"), "libtcmalloc-minimal4"
# One arena, no caches of threads, freed pages given back at once.
_TUNED = "narenas:1,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0"

ALLOCATORS = (
    Allocator("pymalloc", "Python's default: its own up to 512 bytes, glibc's above"),
    Allocator("malloc", "glibc's alone (PYTHONMALLOC=malloc)", settings=_ALONE),
    Allocator("jemalloc", "pymalloc, and jemalloc above 512 bytes", *_JEMALLOC),
    Allocator(
        "jemalloc tuned",
        f"the same with MALLOC_CONF={_TUNED}",
        *_JEMALLOC,
        settings=(("MALLOC_CONF", _TUNED),),
    ),
    Allocator("jemalloc alone", "jemalloc for all sizes", *_JEMALLOC, settings=_ALONE),
    Allocator("tcmalloc", "pymalloc, and tcmalloc above 512 bytes", *_TCMALLOC),
    Allocator("tcmalloc alone", "tcmalloc for all sizes", *_TCMALLOC, settings=_ALONE),
)


def loaded(library: str, pid: int) -> bool:
    """Whether the process has it mapped: a loader only warns of one it cannot find."""
    name = library.partition(".so")[0]
    return name in Path(f"/proc/{pid}/maps").read_text()
