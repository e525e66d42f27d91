"""A Sharing for a terminal, 80 columns, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

from cowpreload.causes import Example, How, Row, Sharing
from cowpreload.units import MIB

WIDTH = 80
SHOWN = 3  # examples of each cause
_HEAD = f"{'cause':<40}{'pages':>9}{'alone':>9}{'MiB':>11}{'share':>10}"


def why_text(
    sharing: Sharing,
    advice: Sequence[str],
    examples: int = SHOWN,
    *,
    ours: bool = True,
) -> str:
    """The whole report: what was read and how, a table, what to do.

    Args:
        ours: it is a worker with our class or plugin, not any other process.
    """
    head = _head(sharing, "Worker" if ours else "Process")
    lines = [*head, "", _HEAD, "-" * len(_HEAD)]
    for row in sharing.rows:
        lines.append(_row(row, sharing))
        lines += [_example(each) for each in row.examples[:examples]]
    lines += ["-" * len(_HEAD), _line("all private pages", sharing.pages, "", sharing)]
    for text in sharing.notes:
        lines += ["", *textwrap.wrap(f"note: {text}", WIDTH)]
    if advice:
        lines.append("")
    for text in advice:
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def _head(sharing: Sharing, what: str) -> list[str]:
    master = f" of master {sharing.master_pid}" if sharing.master_pid else ""
    python = f", CPython {sharing.version}" if sharing.version else ""
    told = {
        How.STILL: f"Read from a still copy, in {sharing.seconds:.1f} s; making it "
        f"held the worker for at most {sharing.pause * 1000:.1f} ms.",
        How.LIVE: f"Read while it runs, in {sharing.seconds:.1f} s; it was not held.",
        How.MAPS: "Read from its page maps alone; it was not held.",
    }[sharing.how]
    heap = "frozen" if sharing.frozen else "not frozen"
    state = f"The inherited heap is {heap}; {sharing.collections} full collections."
    text = (
        f"{what} {sharing.pid}{master}{python}: "
        f"{sharing.private / MIB:.1f} MiB private. {told}"
    )
    if sharing.how is not How.MAPS:
        text += f" {state}"
    return textwrap.wrap(text, WIDTH)


def _line(name: str, pages: int, alone: object, sharing: Sharing) -> str:
    share = pages / sharing.pages if sharing.pages else 0.0
    size = pages * sharing.page_size / MIB
    return f"{name:<40}{pages:>9}{alone:>9}{size:>11.1f}{share:>10.1%}"


def _row(row: Row, sharing: Sharing) -> str:
    return _line(row.cause.value, row.pages, row.alone, sharing)


def _example(example: Example) -> str:
    room = WIDTH - 14
    text = example.text
    if len(text) > room:
        text = f"{text[: room - 3]}..."
    return f"  {example.pages:>8}  {text}"


def why_json(sharing: Sharing, advice: Sequence[str]) -> str:
    """All figures, sizes in bytes and times in seconds."""
    figures = {
        **asdict(sharing),
        "how": sharing.how.value,
        "pages": sharing.pages,
        "private": sharing.private,
        "rows": [
            {
                "cause": row.cause.value,
                "pages": row.pages,
                "alone": row.alone,
                "bytes": row.pages * sharing.page_size,
                "names": row.names,
                "examples": [asdict(each) for each in row.examples],
            }
            for row in sharing.rows
        ],
        "runs": [[run.start, run.pages, run.cause.value] for run in sharing.runs],
        "advice": list(advice),
    }
    return json.dumps(figures, indent=1)
