"""Build `cowpreload.native._cow` with cffi in API mode.

Takes the C files beside it; gives an extension that only `cowpreload._core`
imports. Must not be imported at run time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
CPYTHON = sys.implementation.name == "cpython"
SOURCES = (
    "prim.c",
    "reading.c",
    "verdict.c",
    "board.c",
    "watch.c",
    "still.c",
    "words.c",
    "layout.c",
    "pointers.c",
    "immortal.c",
    "api.c",
)
HEADERS = (
    "cow.h",
    "prim.h",
    "layout.h",
    "still.h",
    "words.h",
    "immortal.h",
    "pointers.h",
    "compat.h",
    "cow.cdef",
)
FLAGS = [
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    # cffi's own generated code has these by construction.
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Wno-sign-compare",
    # A cdef that disagrees with the header would otherwise be a mere warning.
    "-Werror=incompatible-pointer-types",
]


def sanitizer_flags() -> list[str]:
    """The flags of `make test-asan`, which sets COW_SANITIZE=address."""
    name = os.environ.get("COW_SANITIZE")
    return [f"-fsanitize={name}", "-g", "-fno-omit-frame-pointer"] if name else []


def relative(name: str) -> str:
    """setuptools wants paths from the project's root."""
    return os.path.relpath(HERE / name)


ffi = FFI()
ffi.cdef((HERE / "cow.cdef").read_text())
ffi.set_source(
    "cowpreload.native._cow",
    '#include "cow.h"\n#include "immortal.h"\n#include "layout.h"\n'
    '#include "still.h"\n#include "words.h"\n',
    sources=[relative(name) for name in SOURCES],
    include_dirs=[relative(".")],
    depends=[relative(name) for name in HEADERS],
    # What needs Python's headers compiles to "not with this interpreter" without this.
    define_macros=[("COW_CPYTHON", "1")] if CPYTHON else [],
    extra_compile_args=FLAGS + sanitizer_flags(),
    extra_link_args=sanitizer_flags(),
    # It reads object headers: no stable ABI, and cffi would tag the file abi3 unasked.
    py_limited_api=False,
)

if __name__ == "__main__":
    ffi.compile(verbose=True)
