"""The only importer of the native core: codes become exceptions, structs records.

Takes and gives plain numbers and the records of `records.py`: seconds and bytes.
Holds no policy. Importing it in a sub-interpreter is not supported (the extension
has one state for the process); stages that run there must not need it.
"""

from __future__ import annotations

import errno
import os
from typing import Any

from cowpreload.errors import NativeError
from cowpreload.native._cow import ffi, lib
from cowpreload.records import (
    Action,
    History,
    Limits,
    Reading,
    SealReport,
    Verdict,
)

__all__ = ["LEAVING", "REASONS", "SLOTS", "check", "ffi", "lib"]

SLOTS: int = lib.COW_SLOTS

_ACTIONS = {
    lib.COW_KEEP: Action.KEEP,
    lib.COW_RECYCLE: Action.RECYCLE,
    lib.COW_KILL: Action.KILL,
    lib.COW_ASK_AGAIN: Action.ASK_AGAIN,
}
REASONS = {
    lib.COW_REASON_NONE: "",
    lib.COW_REASON_PRIVATE: "max-private",
    lib.COW_REASON_GROWTH: "max-growth",
    lib.COW_REASON_HARD: "max-private-hard",
    lib.COW_REASON_UNHEEDED: "unheeded",
    lib.COW_REASON_RENEWED: "renewed",
    lib.COW_REASON_BUDGET: "budget",
    lib.COW_REASON_ROOM: "room",
    lib.COW_REASON_STALLED: "pressure",
}
_UNSEALED = {
    lib.COW_UNSEALED_UNKNOWN: "kept by another allocator than pymalloc or glibc's",
    lib.COW_UNSEALED_MEMORY: "no memory left to fill with",
}
LEAVING: int = lib.COW_LEAVING


def check(code: int) -> None:
    """Raise NativeError unless `code` is COW_OK."""
    if code != lib.COW_OK:
        reason = os.strerror(ffi.errno) if code == lib.COW_ESYSTEM else ""
        text = ffi.string(lib.cow_strerror(code)).decode()
        raise NativeError(f"{text}: {reason}" if reason else text)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _reading(raw: Any) -> Reading:
    return Reading(
        raw.private_bytes, raw.shared_bytes, raw.pss, raw.rss, raw.evictable_bytes
    )


def parse_reading(text: bytes) -> Reading:
    """Parse the text of smaps_rollup or smaps; NativeError if figures are missing."""
    raw = ffi.new("struct cow_reading *")
    check(lib.cow_reading_parse(text, len(text), raw))
    return _reading(raw)


def parse_statm(text: bytes, page_size: int) -> tuple[int, int]:
    """Give the bytes that statm's text names: resident, and of these of files."""
    resident, files = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    check(lib.cow_statm_parse(text, len(text), page_size, resident, files))
    return int(resident[0]), int(files[0])


def take_reading(pid: int = 0) -> Reading:
    """Read a process (0: this one), 20 ms a GiB; NativeError if /proc gives nothing."""
    raw = ffi.new("struct cow_reading *")
    check(lib.cow_reading_take(pid, raw))
    return _reading(raw)


def heap_size() -> int:
    """Bytes of this process that its workers will inherit; 0 if they cannot be read."""
    try:
        reading = take_reading()
    except NativeError:
        return 0
    return reading.private + reading.evictable + reading.shared


def limits_struct(limits: Limits) -> Any:
    """The C form of `limits`."""
    return ffi.new(
        "struct cow_limits *",
        {
            "max_private": limits.max_private,
            "max_private_hard": limits.max_private_hard,
            "max_growth": limits.max_growth,
            "min_lifetime_ms": _ms(limits.min_lifetime),
            "interval_ms": _ms(limits.interval),
            "graceful_ms": _ms(limits.graceful),
            "strikes": limits.strikes,
            "max_recycling": limits.max_recycling,
            "pressure": limits.pressure,
        },
    )


def _history_struct(history: History) -> Any:
    return ffi.new(
        "struct cow_history *",
        {
            "ready_at_ms": _ms(history.ready_at),
            "ready_private": history.ready_private,
            "jitter_ms": _ms(history.jitter),
            "over_since_ms": _ms(history.over_since),
            "strikes": history.strikes,
            "early": history.early,
            "asked_at_ms": _ms(history.asked_at),
            "asked_limit": history.asked_limit,
            "asked_again": history.asked_again,
        },
    )


def judge(limits: Limits, history: History, reading: Reading, now: float) -> Verdict:
    """The verdict on a worker, by the function that both hosts run. Pure."""
    raw = ffi.new("struct cow_reading *", {"private_bytes": reading.private})
    out = ffi.new("struct cow_verdict *")
    lib.cow_judge(limits_struct(limits), _history_struct(history), raw, _ms(now), out)
    return Verdict(
        _ACTIONS[out.action],
        REASONS[out.reason],
        out.limit,
        out.strikes,
        out.over_since_ms / 1000,
        out.early,
    )


def spared(limits: Limits, history: History) -> float:
    """Seconds after ready in which no soft limit recycles the worker. Pure."""
    return float(
        lib.cow_spared_ms(limits_struct(limits), _history_struct(history)) / 1000
    )


class Look:
    """The bound on this process's private memory that a watching thread goes by."""

    def __init__(self) -> None:
        self._raw = ffi.new("struct cow_look *")

    def read(self) -> Reading:
        """Take the reading that `bound` counts from."""
        reading = ffi.new("struct cow_reading *")
        check(lib.cow_look_read(self._raw, reading))
        return _reading(reading)

    def bound(self) -> int:
        """The most that private memory can be now; 2**64 - 1 where nothing tells."""
        return int(lib.cow_look_bound(self._raw, ffi.new("uint64_t *")))

    def close(self) -> None:
        """Give back the pages that tell of children."""
        lib.cow_look_end(self._raw)


def nap(limits: Limits, history: History, private: int, speed: int) -> float:
    """Seconds for which the hard limit can be left alone. Pure."""
    raw = limits_struct(limits), _history_struct(history)
    return float(lib.cow_nap_ms(*raw, private, speed) / 1000)


def reading_due(limits: Limits, history: History, bound: int, now: float) -> bool:
    """Whether `bound` calls for a reading. Pure."""
    return bool(
        lib.cow_reading_due(
            limits_struct(limits), _history_struct(history), bound, _ms(now)
        )
    )


def begin_deadline(code: int) -> None:
    """End this process with `code` in 5 s, whatever then holds it up."""
    lib.cow_deadline_begin(code)


def end_with(parent: int) -> None:
    """In a child: end when process `parent` does, by SIGKILL, even in C code.

    Raises:
        NativeError: it has gone already.
    """
    check(lib.cow_end_with(parent))


def flush_stdio() -> None:
    """Write what C's stdio has buffered; may wait for ever."""
    lib.cow_flush_stdio()


def trim() -> None:
    """Give the free end of the C heap back to the system."""
    lib.cow_trim()


def seal() -> SealReport:
    """Fill the holes between the objects of this process; an unknown heap is left."""
    raw = ffi.new("struct cow_seal *")
    lib.cow_seal(raw)
    heaps = (("Python's objects", raw.python), ("the C heap", raw.c_heap))
    return SealReport(
        holes=raw.blocks + raw.chunks,
        bytes=raw.block_bytes + raw.chunk_bytes,
        returned=raw.returned,
        unsealed=tuple(
            f"{heap}: {_UNSEALED[why_not]}"
            for heap, why_not in heaps
            if why_not != lib.COW_SEALED
        ),
    )


def offer_to_merge() -> int:
    """Let the kernel merge equal pages of what is allocated; bytes of address space.

    Raises:
        NativeError: this kernel cannot, or there is no /proc.
    """
    raw = ffi.new("struct cow_merge *")
    code = lib.cow_merge_offer(raw)
    if code == lib.COW_ESYSTEM:
        why = "no KSM in it" if raw.error == errno.EINVAL else os.strerror(raw.error)
        raise NativeError(f"this kernel merges no memory ({why})")
    check(code)
    return int(raw.bytes)


def immortal_why_not() -> str:
    """Why no heap can be made immortal in this interpreter; "" if one can."""
    return str(ffi.string(lib.cow_immortal_why_not()).decode())


def immortalize(
    keep: list[Any], held: Any = None, fill: int = lib.COW_FILL_DEFAULT
) -> tuple[str, int, int, int, int, int]:
    """Make all of the main interpreter's heap immortal but the items of `keep`.

    `held` says what only a program can know: holders.Held, or None.

    Returns:
        The fields of a WalkReport. Raises nothing: half a walk is harmless.
    """
    out = ffi.new("struct cow_walk *")
    asked = ffi.NULL if held is None else ffi.cast("void *", id(held))
    code = lib.cow_immortalize(ffi.cast("void *", id(keep)), asked, fill, out)
    fault = "" if code == lib.COW_OK else ffi.string(lib.cow_strerror(code)).decode()
    return fault, out.objects, out.kept, out.hashes, out.utf8, out.versions


def make_immortal(address: int) -> None:
    """Make the one object at `address` (id()) immortal; NativeError if none can be."""
    check(lib.cow_immortal_one(ffi.cast("void *", address)))


def count_word(address: int) -> int:
    """The eight bytes that counting references writes in the object at `address`."""
    return int(lib.cow_immortal_word(ffi.cast("void *", address)))


def now() -> float:
    """Seconds of the clock that the board uses."""
    return float(lib.cow_now_ms() / 1000)
