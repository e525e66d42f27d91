"""Name, page by page and summed up, why a worker's memory is no longer shared.

The worker serves on: its bytes are read from a still copy, a fork that runs nothing.
docs/why.md explains the report.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HELP = "say why a worker's memory is private"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The worker, and what to write."""
    parser.add_argument(
        "--pid",
        type=int,
        help="a worker's pid, or with --slot its master's (default: the worker of the "
        "only server that has the most private memory)",
    )
    parser.add_argument(
        "--slot", type=int, metavar="N", help="the worker's number in cowpreload status"
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="make no still copy: read the worker while it runs",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")
    parser.add_argument(
        "--png",
        type=Path,
        metavar="FILE",
        help="draw the address space (needs the extra plot)",
    )
    parser.add_argument(
        "--examples",
        type=int,
        default=3,
        metavar="N",
        help="for each cause, at most 10 (default: 3)",
    )


def find_worker(pid: int | None, slot: int | None) -> int:
    """The pid of the worker that is meant.

    Raises:
        LookupError: there is none, or more than one server.
    """
    from cowpreload.board import find_masters, open_board

    if pid is not None and slot is None:
        return pid
    masters = [pid] if pid is not None else find_masters()
    if len(masters) != 1:
        found = ", ".join(map(str, masters)) or "none"
        raise LookupError(f"pid: masters found: {found}; name one worker by --pid")
    workers = [each for each in open_board(masters[0]) if each.pid]
    if slot is not None:
        workers = [each for each in workers if each.slot == slot]
    if not workers:
        raise LookupError(f"slot={slot}: has no worker; see cowpreload status")
    return max(workers, key=lambda each: each.private).pid


def run(arguments: argparse.Namespace) -> int:
    """Print one report; progress on stderr, where that is a terminal."""
    from cowpreload.report.why import why_json, why_text
    from cowpreload.why.advice import advise
    from cowpreload.why.examine import examine

    if arguments.png and not _can_draw():
        raise LookupError("png: needs matplotlib; run: pip install 'cowpreload[plot]'")
    pid = find_worker(arguments.pid, arguments.slot)
    if pid == os.getpid():
        raise LookupError(f"pid={pid}: is this command")

    def say(text: str) -> None:
        if sys.stderr.isatty():
            print(f"why: {text}", file=sys.stderr, flush=True)

    sharing = examine(pid, live=arguments.live, progress=say)
    advice = advise(sharing)
    if arguments.json:
        print(why_json(sharing, advice))
    else:
        print(why_text(sharing, advice, arguments.examples))
    if arguments.png:
        from cowpreload.report.picture import draw

        draw(sharing, arguments.png)
        say(f"wrote {arguments.png}")
    return 0


def _can_draw() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None
