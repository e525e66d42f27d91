"""Watch running servers live: memory as bars, minutes, what happens as it happens.

Of all of this user's servers, or of one. Keys sort, recycle one worker after a
question, ask why its memory is private, and quit. Needs textual, the extra `top`;
without it, or where stdout is no terminal, the tables of `cowpreload status` are
written again and again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

from cowpreload.cli.record import duration
from cowpreload.errors import CowError, NotFoundError
from cowpreload.report.live import events
from cowpreload.report.status import WIDTH, status_text
from cowpreload.view import ServerView

HELP = "watch running servers live"
_MISSING = "the live view needs textual; run: pip install 'cowpreload[top]'"
_EVENTS = 8

Take = Callable[[], list[ServerView]]
"""One reading of what is watched; raises NotFoundError when that has ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The server, where not all are meant; how often."""
    from cowpreload.cli import who

    who.add_argument(parser, "default: all servers of this user")
    parser.add_argument(
        "--interval",
        type=duration,
        default=2.0,
        metavar="S",
        help="seconds between two readings (default: 2)",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="write tables, as where there is no textual or no terminal",
    )


def run(arguments: argparse.Namespace) -> int:
    """Watch until `q` or Ctrl-C."""
    from cowpreload.cli import who
    from cowpreload.cli.record import taker

    take = taker(arguments.who)
    if not take():
        raise NotFoundError(who.other_versions() or who.NONE_FOUND)
    # textual draws on stderr.
    on_terminal = all(each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr))
    missing = find_spec("textual") is None
    live = on_terminal and os.environ.get("TERM", "dumb") != "dumb"
    if arguments.plain or missing or not live:
        note = _MISSING if missing and live and not arguments.plain else ""
        return _plain(take, arguments.interval, note)
    from cowpreload.cli.top_screen import Top

    Top(take, arguments.interval).run()
    return 0


def _plain(take: Take, interval: float, note: str) -> int:
    """Tables, one after the other; on a terminal each in the place of the last."""
    on_terminal = sys.stdout.isatty()
    before, told = None, list[str]()
    while True:
        try:
            views = take()
        except CowError:
            print("top: the server has ended", file=sys.stderr)
            return 0
        if before is not None:
            stamp = time.strftime("%H:%M:%S")
            told += [f"{stamp} {line}" for line in events(before, views)]
        before = views
        size = shutil.get_terminal_size((WIDTH, 24))
        width = min(WIDTH, size.columns) if on_terminal else WIDTH
        texts = [status_text(each, width) for each in views] or ["no server runs"]
        lines = "\n\n".join(texts).split("\n")
        below = [*told[-_EVENTS:], *([note] if note else [])]
        if on_terminal:
            lines = lines[: max(1, size.lines - len(below) - 2)]
            lines = [line[: size.columns] for line in [*lines, "", *below]]
            sys.stdout.write("\x1b[H\x1b[2J" + "\n".join(lines) + "\n")
        else:
            sys.stdout.write("\n".join([*lines, *told, ""]) + "\n")
            told.clear()
        sys.stdout.flush()
        time.sleep(interval)
