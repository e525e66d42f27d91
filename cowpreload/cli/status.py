"""Show running servers: what they and their workers take, and what they have warmed.

Of all of this user's servers, or of one. The exit status says whether all is well: 0;
1, a limit is being passed: a worker has more private memory than one of its limits
allows, or is leaving because it had; 2, there is no server, or it cannot be shown.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from contextlib import closing

from cowpreload.board import Board
from cowpreload.errors import NotFoundError
from cowpreload.report.learned import learned_line
from cowpreload.report.status import WIDTH, status_text
from cowpreload.report.status_json import status_json
from cowpreload.report.warmed import warmed_lines
from cowpreload.view import ServerView

HELP = "show running servers, their workers' memory, and what was warmed"
FAILED = 2  # the exit status of an error: 1 is a limit that is passed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The server, where not all are meant."""
    from cowpreload.cli import who

    who.add_argument(parser, "default: all servers of this user")
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")


def run(arguments: argparse.Namespace) -> int:
    """Print all of them."""
    from cowpreload import servers
    from cowpreload.cli import who

    views, texts = [], []
    for board in who.servers(arguments.who):
        with closing(board):
            views.append(servers.look(board))
            if not arguments.json:
                texts.append(_text(board, views[-1], _width()))
    other = "" if arguments.who else who.other_versions()
    if not views:
        raise NotFoundError(other or who.NONE_FOUND)
    if other:
        print(f"note: {other}", file=sys.stderr)
    print(status_json(views, time.time()) if arguments.json else "\n\n".join(texts))
    return int(any(each.passing or each.totals.is_over for each in views))


def _width() -> int:
    """Of a terminal, that of its lines; a pipe takes all columns."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


def _text(board: Board, view: ServerView, width: int) -> str:
    from cowpreload import served
    from cowpreload.shapes import shapes

    total_pss = view.totals.pss if view.totals.is_whole else 0
    pages = shapes(served.read(board))
    # Celery has no pages that a request could warm.
    warmings = () if view.master.host.startswith("celery") else view.master.warmings
    lines = (
        status_text(view, width),
        warmed_lines(warmings, total_pss),
        learned_line(served.noted(board), pages, served.withheld(board)),
        view.note and f"note: {view.note}",
    )
    return "\n".join(line for line in lines if line)
