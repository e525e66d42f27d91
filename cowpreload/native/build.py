"""Build `cowpreload.native._cow` and `._offsets` with cffi in API mode.

Takes the C files beside it; gives two extensions, which only `cowpreload._core` and
`cowpreload._offsets` import. Must not be imported at run time.

The first is what serves, and builds on Python's public headers. The second reads
CPython's internal ones, which a Python may lack or change: an install goes on without
it, and only `cowpreload why` misses it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
CPYTHON = sys.implementation.name == "cpython"
SOURCES = (
    "prim.c",
    "prim_memory.c",
    "reading.c",
    "traffic.c",
    "look.c",
    "own.c",
    "pace.c",
    "verdict.c",
    "budget.c",
    "pressure.c",
    "group.c",
    "squeeze.c",
    "board.c",
    "served.c",
    "watch.c",
    "still.c",
    "deadline.c",
    "words.c",
    "pointers.c",
    "edges.c",
    "loads.c",
    "fills.c",
    "immortal.c",
    "c_heap.c",
    "hot.c",
    "seal.c",
    "maps.c",
    "merge.c",
    "moved.c",
    "heal.c",
    "api.c",
)
HEADERS = (
    "cow.h",
    "verdict.h",
    "pressure.h",
    "group.h",
    "squeeze.h",
    "board.h",
    "budget.h",
    "served.h",
    "prim.h",
    "look.h",
    "own.h",
    "pace.h",
    "still.h",
    "words.h",
    "immortal.h",
    "c_heap.h",
    "hot.h",
    "seal.h",
    "maps.h",
    "merge.h",
    "moved.h",
    "pointers.h",
    "edges.h",
    "loads.h",
    "fills.h",
    "compat.h",
    "offsets.h",
)
FLAGS = [
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    # cffi's own generated code has these by construction.
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Wno-sign-compare",
]


def optimization() -> list[str]:
    """Ours, unless CFLAGS name a level: they come first on the command line, and the
    last one counts."""
    given = os.environ.get("CFLAGS", "").split()
    return [] if any(flag.startswith("-O") for flag in given) else ["-O2"]


def strict_flags() -> list[str]:
    """In our own builds (tools/envs.py sets COW_WERROR=1) a warning is an error.

    One in a user's build, of a compiler that we do not know, must not end an install.
    """
    return ["-Werror"] if os.environ.get("COW_WERROR") == "1" else []


def sanitizer_flags() -> list[str]:
    """The flags of `make test-asan`, which sets COW_SANITIZE=address."""
    name = os.environ.get("COW_SANITIZE")
    return [f"-fsanitize={name}", "-g", "-fno-omit-frame-pointer"] if name else []


def more_flags() -> list[str]:
    """What the environment decides."""
    return optimization() + strict_flags() + sanitizer_flags()


def relative(name: str) -> str:
    """setuptools wants paths from the project's root."""
    return os.path.relpath(HERE / name)


def extension(
    name: str, cdef: str, sources: Sequence[str], headers: Sequence[str], **more: bool
) -> FFI:
    """One extension: what Python may see, its C files, the headers of its glue."""
    made = FFI()
    made.cdef((HERE / cdef).read_text())
    made.set_source(
        f"cowpreload.native.{name}",
        "".join(f'#include "{each}"\n' for each in headers),
        sources=[relative(each) for each in sources],
        include_dirs=[relative(".")],
        depends=[relative(each) for each in (*HEADERS, cdef)],
        # What needs Python's headers compiles to "not with this interpreter" without.
        define_macros=[("COW_CPYTHON", "1")] if CPYTHON else [],
        extra_compile_args=FLAGS + more_flags(),
        extra_link_args=sanitizer_flags(),
        # Object headers are read: no stable ABI, and cffi would tag the file abi3.
        py_limited_api=False,
        **more,
    )
    return made


core = extension(
    "_cow",
    "cow.cdef",
    SOURCES,
    (
        "cow.h",
        "budget.h",
        "look.h",
        "squeeze.h",
        "immortal.h",
        "hot.h",
        "seal.h",
        "merge.h",
        "moved.h",
        "still.h",
        "words.h",
    ),
)
# setuptools goes on when an optional extension does not compile.
offsets = extension(
    "_offsets", "offsets.cdef", ("offsets.c",), ("offsets.h",), optional=True
)

if __name__ == "__main__":
    core.compile(verbose=True)
    offsets.compile(verbose=True)
