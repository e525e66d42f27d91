"""What to do about it: advice that follows from a finding. Pure.

Takes a Sharing, gives sentences with the figure first. A cause is worth a sentence if
it holds a twentieth of the private memory, or a MiB of it and a hundredth.
"""

from __future__ import annotations

from collections.abc import Callable

from cowpreload.causes import SAME, Cause, How, Row, Sharing
from cowpreload.units import MIB

_SMALL = 4 * MIB  # below this a worker has little to give back
_IMMORTAL = (3, 12)
# What a page may write at its first request, and a warm up of it before the fork.
_COLD = (
    Cause.SPECIALIZATION,
    Cause.HASH,
    Cause.STORAGE,
    Cause.INTERPRETER,
    Cause.LIBRARY,
)


def advise(sharing: Sharing) -> tuple[str, ...]:
    """One sentence for each cause worth it, largest first, and on what a warm up may
    save; at least one sentence."""
    found = [f"{size / MIB:.1f} MiB {text}" for size, text in causes(sharing)]
    if sharing.how is How.MAPS:
        return (
            "What changed was not read: only the page maps were; see the notes above.",
        )
    if sharing.private < _SMALL:
        found.append(
            f"{sharing.private / MIB:.1f} MiB in all: there is little to gain here."
        )
    else:
        found += _warm_up(sharing)
    return tuple(found)


def causes(sharing: Sharing) -> list[tuple[int, str]]:
    """Of each cause that is worth a sentence, largest first: its bytes, and the rest of
    the sentence; nothing where the bytes of the worker were not read."""
    if sharing.how is How.MAPS:
        return []
    return [
        (row.pages * sharing.page_size, _ADVICE[row.cause](row, sharing))
        for row in sharing.rows
        if _worth(row, sharing)
    ]


def _worth(row: Row, sharing: Sharing) -> bool:
    part = row.pages / sharing.pages
    return part >= 0.05 or (part >= 0.01 and row.pages * sharing.page_size >= MIB)


def _warm_up(sharing: Sharing) -> list[str]:
    """How pages are warmed by themselves, where some may be cold."""
    cold = [row for row in sharing.rows if row.cause in _COLD and _worth(row, sharing)]
    if not cold:
        return []
    size = sum(row.pages for row in cold) * sharing.page_size
    return [
        f"{size / MIB:.1f} MiB of that a warm up may save: cow-warmup = auto finds the "
        "pages; `cowpreload warmup` lists those that the server has served."
    ]


def _version(sharing: Sharing) -> tuple[int, ...]:
    return tuple(int(part) for part in sharing.version.split(".")[:2])


def _top(row: Row, count: int = 1) -> str:
    """The first examples; of those that say only what was written back, what it was."""
    named = [each.text for each in row.examples if not each.text.startswith(SAME)]
    back = [each.text.removeprefix(f"{SAME}: ") for each in row.examples]
    return ", ".join((named or back)[:count])


def _refcount(row: Row, sharing: Sharing) -> str:
    if _version(sharing) < _IMMORTAL:
        return (
            f"by reference counts: CPython {'.'.join(sharing.version.split('.')[:2])} "
            "writes one whenever an object is read and cannot avoid it; 3.12 and newer "
            "can (cow-immortal)."
        )
    return (
        f"by reference counts, most of {_top(row)}: cow-immortal = on keeps them out "
        "of the inherited heap; where it is on, these objects were kept mortal or made "
        "after the freeze."
    )


def _collector(row: Row, sharing: Sharing) -> str:
    if sharing.frozen:
        return (
            "by collector headers although the heap is frozen: objects that are made "
            "and freed are linked between inherited ones; warm up more, so that these "
            "are there before the fork."
        )
    return (
        f"by the collector, {sharing.collections} full collections since the fork: "
        "freeze the heap before it (cow-freeze = on, or gc.freeze())."
    )


def _specialization(row: Row, sharing: Sharing) -> str:
    return (
        f"by code that first ran after the fork, in {row.names} functions: add the "
        f"paths that run them to cow-warmup. First: {_top(row, 3)}."
    )


def _counters(row: Row, sharing: Sharing) -> str:
    return (
        f"by counters in the code of {row.names} functions that had run before the "
        "fork: an instruction that cannot specialize counts down at each run. "
        "cow-hot-code lays it side by side; more of cow-warmup does not help."
    )


def _hash(row: Row, sharing: Sharing) -> str:
    return (
        f"by hashes that were asked for the first time ({_top(row)}): add the paths "
        "that do it to cow-warmup, or make the heap immortal, which fills them."
    )


def _storage(row: Row, sharing: Sharing) -> str:
    return (
        f"by items put into inherited containers, most in {_top(row)}: fill caches "
        "before the fork (cow-warmup), keep what a request makes out of them."
    )


def _attributes(row: Row, sharing: Sharing) -> str:
    return (
        f"by attributes set on inherited objects, most of {_top(row)}: keep what a "
        "request sets in objects of its own."
    )


def _allocator(row: Row, sharing: Sharing) -> str:
    return (
        "by new objects between inherited ones, in slots that were free at the fork "
        "or have been freed since: cow-seal = on fills what is free at the fork; what "
        "the master and the worker free later stays."
    )


def _interpreter(row: Row, sharing: Sharing) -> str:
    return f"by the interpreter's own state, most of it {_top(row)}: cow-warmup helps."


def _library(row: Row, sharing: Sharing) -> str:
    return (
        f"by C code, most of it {_top(row)}: use the library once before the fork, so "
        "that its tables are filled; what it keeps for each process stays private."
    )


def _stack(row: Row, sharing: Sharing) -> str:
    return "by stacks: fewer threads need less."


def _new(row: Row, sharing: Sharing) -> str:
    return (
        f"are new since the fork, most of it {_top(row)}: the worker's own. If it "
        "grows, cow-max-private recycles the worker."
    )


def _unexplained(row: Row, sharing: Sharing) -> str:
    return (
        f"are not explained{' (' + _top(row) + ')' if row.examples else ''}: the "
        "master's bytes are the same and nothing there is counted, or nothing points "
        "at the memory."
    )


_ADVICE: dict[Cause, Callable[[Row, Sharing], str]] = {
    Cause.REFCOUNT: _refcount,
    Cause.COLLECTOR: _collector,
    Cause.HASH: _hash,
    Cause.SPECIALIZATION: _specialization,
    Cause.COUNTERS: _counters,
    Cause.STORAGE: _storage,
    Cause.ATTRIBUTES: _attributes,
    Cause.ALLOCATOR: _allocator,
    Cause.INTERPRETER: _interpreter,
    Cause.LIBRARY: _library,
    Cause.STACK: _stack,
    Cause.NEW: _new,
    Cause.UNEXPLAINED: _unexplained,
}
