"""What was warmed, from which source, and what it brought: lines for a terminal.

Takes Warming records; gives texts of 80 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from cowpreload.units import MIB
from cowpreload.warmed import Warming

_WIDTH = 80
_FROM = {
    "list": "listed",
    "route": "of routes",
    "file": "of the file",
    "traffic": "of traffic",
}


def _pages(warming: Warming) -> str:
    shown = ", ".join(f"{count} {_FROM[source]}" for source, count in warming.pages)
    return shown or "no page"


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"


def _start(warming: Warming) -> str:
    if not warming.pages:
        return "warmed at the start: no page; cow-warmup = auto finds some"
    return (
        f"warmed at the start: {_pages(warming)}; {warming.requests} requests in "
        f"{warming.seconds:.1f} s; the master grew by {_mib(warming.grew)}"
    )


def _again(warming: Warming, total_pss: int) -> str:
    parts = [
        f"warmed anew {warming.age:.0f} s ago: {_pages(warming)} in "
        f"{warming.seconds:.1f} s",
        f"the master grew by {_mib(warming.grew)}",
    ]
    if warming.verdict:
        parts.append(
            f"the first worker by {_mib(warming.grown_after)}, by "
            f"{_mib(warming.grown_before)} before: {warming.verdict}"
        )
    if warming.total_pss and total_pss:
        parts.append(
            f"total PSS {_mib(warming.total_pss)} before, {_mib(total_pss)} now"
        )
    return "; ".join(parts)


def warmed_lines(warmings: Sequence[Warming], total_pss: int) -> str:
    """A paragraph for each, the start's first.

    Args:
        total_pss: bytes of the whole server now; 0: not known.
    """
    texts = [
        _again(each, total_pss) if number else _start(each)
        for number, each in enumerate(warmings)
    ]
    return "\n".join(fill(text, _WIDTH, subsequent_indent="  ") for text in texts)
