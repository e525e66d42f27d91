"""Why memory is private: the causes, and what a report says of a worker.

Frozen records between `why/`, which finds the causes, and `report/`, which shows them.
Sizes are bytes, times seconds. Must not read a process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Cause(Enum):
    """What wrote to a page, in the order in which ties are decided."""

    REFCOUNT = "reference counts"
    COLLECTOR = "collector headers"
    HASH = "cached hashes and UTF-8"
    SPECIALIZATION = "code specialization"
    COUNTERS = "counters of warm code"
    STORAGE = "container storage"
    ATTRIBUTES = "instance attributes"
    ALLOCATOR = "free slots, allocator"
    INTERPRETER = "interpreter state"
    LIBRARY = "data of C libraries"
    STACK = "thread stacks"
    NEW = "new after the fork"
    UNEXPLAINED = "unexplained"


# How the name of an example begins whose bytes are the master's again.
SAME = "written back to the same value"


class How(Enum):
    """Where the worker's bytes were read."""

    STILL = "still copy"
    LIVE = "live"
    MAPS = "page maps alone"


@dataclass(frozen=True)
class Example:
    """What stands behind a cause: a type, a function, a file.

    Attributes:
        pages: pages of the cause on which this was the most frequent.
        count: changed objects, or blocks of memory.
    """

    text: str
    pages: int
    count: int


@dataclass(frozen=True)
class Row:
    """One cause: the pages booked under it, and those on which nothing else wrote."""

    cause: Cause
    pages: int
    alone: int
    names: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Run:
    """Neighbouring pages of one cause, for the picture."""

    start: int
    pages: int
    cause: Cause


@dataclass(frozen=True)
class Span:
    """One mapping of the address space, for the picture."""

    start: int
    end: int
    name: str
    present: int


@dataclass(frozen=True)
class Sharing:
    """All that `cowpreload why` knows of one worker.

    Attributes:
        version: of the worker's Python, as in 3.13.0; empty if it is not known.
        how: where the bytes were read.
        pause: at most for how long the system held the worker, to copy its page
            tables.
        kernel_private: what smaps_rollup said at the same moment.
        frozen: the inherited heap is in the permanent generation.
        collections: full collections that the worker made.
        notes: what the reader must know of this report's limits.
    """

    pid: int
    master_pid: int
    version: str
    how: How
    pause: float
    seconds: float
    page_size: int
    kernel_private: int
    frozen: bool
    collections: int
    rows: tuple[Row, ...]
    runs: tuple[Run, ...]
    spans: tuple[Span, ...]
    notes: tuple[str, ...]

    @property
    def pages(self) -> int:
        """All private pages."""
        return sum(row.pages for row in self.rows)

    @property
    def private(self) -> int:
        """Private bytes, as counted page by page."""
        return self.pages * self.page_size

    def row(self, cause: Cause) -> Row:
        """The row of `cause`; one of no pages if it has none."""
        return next(
            (row for row in self.rows if row.cause is cause), Row(cause, 0, 0, 0, ())
        )

    def share(self, cause: Cause) -> float:
        """The part of the private pages that is booked under `cause`, 0 to 1."""
        return self.row(cause).pages / self.pages if self.pages else 0.0
