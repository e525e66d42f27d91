"""Views of servers as tests need them: what `status`, `top` and `plot` are given."""

from __future__ import annotations

from cowpreload.view import (
    REASONS,
    Counts,
    End,
    Frozen,
    MasterView,
    ServerView,
    SlotView,
    total,
)
from cowpreload.warmed import Warming

MIB = 1 << 20


def slot(number: int = 1, private: float = 1.5, **given: object) -> SlotView:
    """A worker that is ready, with a limit of 60 MiB and a hard one of 100."""
    figures: dict[str, object] = {
        "slot": number, "state": "ready", "generation": 1, "pid": 7000 + number,
        "requests": 290, "private": int(private * MIB), "evictable": 0,
        "shared": 77 * MIB, "pss": int((private + 15) * MIB), "rss": 90 * MIB,
        "age": 375.4, "read_age": 0.0, "strikes": 0, "ready_age": 375.0,
        "served": 290, "wanted": 3, "ready_private": MIB, "max_private": 60 * MIB,
        "max_private_hard": 100 * MIB, "grown": int((private - 1) * MIB),
    }  # fmt: skip
    return SlotView(**{**figures, **given})  # type: ignore[arg-type]


def told(reason: str = "max-private", generation: int = 1) -> End:
    """A decision about a worker."""
    return End("recycled", reason, generation, 61 * MIB, 60 * MIB, 312.0)


def server(
    *slots: SlotView, at: float = 1e9, recycled: int = 0, **master: object
) -> ServerView:
    """A gunicorn with these workers, of which so many were recycled for max-private."""
    figures: dict[str, object] = {
        "pid": 7000, "host": "gunicorn 27.0.1", "application": "shop.wsgi",
        "age": 7400.0, "private": MIB, "shared": 80 * MIB, "pss": 17 * MIB,
        "rss": 88 * MIB, "frozen": Frozen(1, 84 * MIB, 27358, 695716, 0.333, 7399.0),
        "warmings": (Warming((("list", 1),), 2, 0.01, MIB, age=7400.0),),
    }  # fmt: skip
    view = MasterView(**{**figures, **master})  # type: ignore[arg-type]
    counts = tuple((each, recycled * (each == "max-private")) for each in REASONS)
    killed = tuple((each, 0) for each in REASONS)
    totals = total(view, slots, 512 * MIB, "/sys/fs/cgroup/memory.max", 300 * MIB)
    numbers = Counts(counts, killed, 0, sum(each.served for each in slots), 900, 0)
    return ServerView(at, view, tuple(slots), numbers, totals)
