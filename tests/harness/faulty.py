"""What programs/faulty.c does to the readings and clocks of a server that runs.

Takes a directory; gives the environment to start the server with, and sets faults while
it serves.
"""

from __future__ import annotations

import mmap
import struct
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).parent.parent / "programs" / "faulty.c"
# As enum file of the program.
ROLLUP, SMAPS, STATM, STAT, PAGEMAP, VMSTAT = range(1, 7)
_FILES = 7
_FIELDS = (
    *(("open_error", each) for each in range(_FILES)),
    *(("read_error", each) for each in range(_FILES)),
    *(("length", each) for each in range(_FILES)),
    *(("without", 0), ("one_in", 0), ("ahead_ns", 0), ("done", 0)),
)


class Faulty:
    """A library that stands between a server and the system.

    Attributes:
        environ: what loads it.
    """

    def __init__(self, directory: Path) -> None:
        library, held = directory / "faulty.so", directory / "faults"
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, PROGRAM, "-ldl"]
        subprocess.run(command, check=True)
        held.write_bytes(bytes(8 * len(_FIELDS)))
        with held.open("r+b") as file:
            self._held = mmap.mmap(file.fileno(), 0)
        self.environ = {"LD_PRELOAD": str(library), "FAULTS": str(held)}
        self.whole()

    def _at(self, name: str, file: int = 0) -> int:
        return 8 * _FIELDS.index((name, file))

    def _set(self, name: str, value: int, file: int = 0) -> None:
        struct.pack_into("q", self._held, self._at(name, file), value)

    def whole(self) -> None:
        """No fault any more."""
        for name, file in _FIELDS[:-1]:
            self._set(name, -1 if name == "length" else 0, file)

    def fail(self, how: str, error: int, *files: int, one_in: int) -> None:
        """One `open` or `read` in so many gives this errno."""
        for file in files:
            self._set(f"{how}_error", error, file)
        self._set("one_in", one_in)

    def cut(self, length: int, *files: int, one_in: int) -> None:
        """One in so many ends after these bytes."""
        for file in files:
            self._set("length", length, file)
        self._set("one_in", one_in)

    def without(self, one_in: int) -> None:
        """One reading in so many has no Private_Dirty."""
        self._set("without", 1)
        self._set("one_in", one_in)

    def set_clock(self, seconds: float) -> None:
        """The wall clock goes ahead by these seconds, or back."""
        self._set("ahead_ns", int(seconds * 1e9))

    @property
    def done(self) -> int:
        """How many faults there were."""
        return int(struct.unpack_from("q", self._held, self._at("done"))[0])
