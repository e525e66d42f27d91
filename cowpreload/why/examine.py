"""Compose the stages: a pid becomes a Sharing, page by page.

What a page map alone says is said of every worker; what needs the bytes of worker and
master is left out where they cannot be read, and is then unexplained.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing

from cowpreload import _offsets
from cowpreload._offsets import Offsets, Python
from cowpreload.causes import Cause, How, Sharing, Span
from cowpreload.errors import WhyError
from cowpreload.why import booking, snapshot
from cowpreload.why.changes import Changes, Process
from cowpreload.why.evidence import Evidence
from cowpreload.why.heap import Heap
from cowpreload.why.locate import Worker, locate, python_in
from cowpreload.why.naming import Names
from cowpreload.why.objects import Objects
from cowpreload.why.owners import Owners
from cowpreload.why.process import PAGE, Mapping, Memory
from cowpreload.why.snapshot import Page, Snapshot
from cowpreload.why.still import Still
from cowpreload.why.threads import Threads

_A_HEAP = 2000  # objects of the collector's; an empty program has more
NAMED = 3000  # containers whose place in the program is looked for
_OTHER_PYTHON = (
    "it runs another Python than this command: page maps alone; run "
    "`python -m cowpreload why` with the worker's own Python"
)
Found = Counter[tuple[Cause, str]]
Progress = Callable[[str], None]


def _quiet(text: str) -> None:
    """Say nothing."""


def examine(pid: int, *, live: bool = False, progress: Progress = _quiet) -> Sharing:
    """Find out why the memory of worker `pid` is private.

    Args:
        live: do not ask the worker for a still copy, read it while it runs.

    Raises:
        WhyError: it cannot be read, or is no worker.
    """
    with ExitStack() as opened:
        return _Examination(locate(pid), live, progress, opened).run()


class _Examination:
    """What one run gathers."""

    def __init__(
        self, worker: Worker, live: bool, progress: Progress, opened: ExitStack
    ) -> None:
        self._worker, self._opened = worker, opened
        self._pid, self._master = worker.pid, worker.master
        self._live, self._say = live, progress
        self._notes: list[str] = []
        self._evidence: dict[int, Evidence] = {}
        self._pages: dict[int, Found] = {}
        self._frozen, self._collections = False, 0
        self._how = How.MAPS
        self._snapshot: Snapshot | None = None

    def run(self) -> Sharing:
        began = time.monotonic()
        if not self._master:
            self._notes.append("it is no fork of its parent: no bytes to compare with")
        python = python_in(self._worker)
        if python is None:
            unknown = _offsets.why_not()
            self._notes.append(
                f"page maps alone: {unknown}" if unknown else _OTHER_PYTHON
            )
        pause = self._read(python)
        shot = self._shot()
        return Sharing(
            pid=self._pid,
            master_pid=self._master,
            version=python[1].text if python else "",
            how=self._how,
            pause=pause,
            seconds=time.monotonic() - began,
            page_size=PAGE,
            kernel_private=shot.kernel_private,
            frozen=self._frozen,
            collections=self._collections,
            rows=booking.sum_up(self._pages),
            runs=booking.runs(self._pages, PAGE),
            spans=tuple(
                Span(each.start, each.end, each.name, shot.present[each])
                for each in shot.pages
            ),
            notes=tuple(self._notes),
        )

    def _shot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = snapshot.take(self._pid, self._master)
        return self._snapshot

    def _read(self, python: tuple[Offsets, Python] | None) -> float:
        """Fill in the pages; how long the worker was held, in seconds."""
        if python is None or not self._master:
            self._from(None, None)
            return 0.0
        board, slot = self._worker.board, self._worker.slot
        if not slot or board is None or self._live:
            self._from(python, self._pid)
            return 0.0
        self._say("asking the worker for a still copy")
        with Still(board, slot, self._shot) as still:
            if still.why_not:
                self._notes.append(
                    f"read live: {still.why_not}; what was written meanwhile may be "
                    "booked wrongly"
                )
            self._from(python, still.pid or self._pid)
            if still.pid and self._how is How.LIVE:
                self._how = How.STILL
            return still.pause

    def _from(self, python: tuple[Offsets, Python] | None, source: int | None) -> None:
        shot = self._shot()
        changes = None
        if python is not None and source is not None:
            changes = self._open(python, source, shot)
        total = sum(len(pages) for pages in shot.pages.values())
        self._say(f"{total} private pages")
        for mapping, pages in shot.pages.items():
            for page in pages:
                self._pages[page.address] = self._page(mapping, page, changes)
        if changes is not None:
            self._say("looking for the owners of changed memory")
            self._own(changes)
            code = shot.mappings[0].start
            if self._ours.memory.ended(code) or self._theirs.memory.ended(code):
                raise WhyError(f"pid={self._pid}: ended while it was read; try again")

    def _open(
        self, python: tuple[Offsets, Python], source: int, shot: Snapshot
    ) -> Changes | None:
        offsets, where = python
        try:
            memories = tuple(
                self._opened.enter_context(closing(Memory(pid, named)))
                for pid, named in ((source, self._pid), (self._master, 0))
            )
        except WhyError as error:
            self._notes.append(f"page maps alone: {error}")
            return None
        self._how = How.LIVE
        sides = []
        for memory, maps in zip(memories, (shot.mappings, shot.master), strict=True):
            objects = Objects(memory, offsets, where.type_type)
            sides.append(Process(memory, Heap(memory, list(maps)), objects))
        self._ours, self._theirs = sides
        ours = memories[0]
        self._threads = Threads(ours)
        self._threads.find_stacks(
            page.address
            for mapping, pages in shot.pages.items()
            if not mapping.path and mapping.writable
            for page in pages
        )
        self._frozen = _is_frozen(ours, where.collector + offsets.frozen_head)
        ran, before = (_collections(each, offsets, where) for each in memories)
        self._collections = ran - before
        collected = self._collections > 0 and not self._frozen
        return Changes(sides[0], sides[1], offsets, collected)

    def _page(self, mapping: Mapping, page: Page, changes: Changes | None) -> Found:
        shot = self._shot()
        if page.swapped:
            return Counter({(Cause.UNEXPLAINED, "swapped out"): 1})
        if page.file:
            return Counter({(Cause.LIBRARY, f"{mapping.name}: no other process"): 1})
        if mapping.start in shot.stacks:
            name = "main thread" if mapping.path else "other threads"
            return Counter({(Cause.STACK, name): 1})
        if changes is not None and self._threads.in_stack(page.address):
            return Counter({(Cause.STACK, "other threads"): 1})
        if not page.inherited and self._master:
            return Counter({self._new(mapping, page, changes): 1})
        if changes is None:
            return Counter({(Cause.UNEXPLAINED, mapping.name): 1})
        evidence = changes.page(page.address)
        self._evidence[page.address] = evidence
        return evidence.found

    def _new(
        self, mapping: Mapping, page: Page, changes: Changes | None
    ) -> tuple[Cause, str]:
        if mapping.inode:
            return Cause.LIBRARY, mapping.name
        if changes is None:
            return Cause.NEW, mapping.name
        place = self._ours.heap.place(page.address)
        return Cause.NEW, changes.young(page.address, place) or mapping.name

    def _own(self, changes: Changes) -> None:
        """Name the plain memory that changed, and the containers."""
        shot = self._shot()
        heap = self._ours.heap
        owners = Owners(
            self._ours.memory, heap, self._ours.objects, self._threads, shot.mappings
        )
        ranges: dict[int, int] = {}
        containers: Counter[int] = Counter()
        for evidence in self._evidence.values():
            containers.update(evidence.containers)
            for plain in evidence.plain:
                place = heap.place(plain.start)
                block = place.block(plain.start) if place else None
                if block is not None and not plain.static:
                    ranges[plain.start] = block.size
        for address, _count in containers.most_common(NAMED):
            ranges[address] = 1
        codes = {code for each in self._evidence.values() for code in each.codes}
        for code in sorted(codes)[:NAMED]:
            ranges[code] = 1
        if ranges:
            owners.search(ranges)
        names = Names(owners)
        for page, evidence in self._evidence.items():
            for plain in evidence.plain:
                evidence.found[names.resolve(plain)] += plain.words
            for address in evidence.containers:
                if address in owners.best:
                    kind = self._ours.objects.at(address)
                    old = (Cause.STORAGE, kind.label if kind else "")
                    evidence.rename(old, names.name(address))
            for address, old in evidence.codes.items():
                evidence.rename(old, names.code(address))
            self._pages[page] = evidence.found


def _collections(memory: Memory, offsets: Offsets, where: Python) -> int:
    """How many full collections a process has made."""
    at = where.collector
    if offsets.collections_pointer:
        at = memory.word(at + offsets.collections_pointer)
    at += offsets.collections
    return max(
        memory.word(at + number * offsets.collections_apart)
        for number in range(offsets.collections_count)
    )


def _is_frozen(memory: Memory, head: int) -> bool:
    """Whether the permanent generation, a ring from `head`, holds a heap.

    CPython 3.12 has 375 objects there when it starts.
    """
    at = head
    for _ in range(_A_HEAP):
        at = memory.word(at)
        if at in (0, head):
            return False
    return True
