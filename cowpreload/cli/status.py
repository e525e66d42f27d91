"""Show the board of a running server: each worker's state and memory."""

from __future__ import annotations

import argparse

from cowpreload.report.learned import learned_line
from cowpreload.report.text import board_table
from cowpreload.report.warmed import warmed_lines

HELP = "show the workers of a running server, and what was warmed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The server, where there is more than one."""
    from cowpreload.cli import who

    who.add_argument(parser, "default: the only server")


def run(arguments: argparse.Namespace) -> int:
    """Print one table."""
    from cowpreload import served, servers
    from cowpreload.cli import who
    from cowpreload.shapes import shapes

    board = who.server(arguments.who)
    view = servers.look(board)
    print(board_table(view.master.pid, view.slots))
    total_pss = view.totals.pss if view.totals.is_whole else 0
    warmed = warmed_lines(view.master.warmings, total_pss)
    if warmed:
        print(warmed)
    pages = shapes(served.read(board))
    learned = learned_line(served.noted(board), pages, served.withheld(board))
    if learned:
        print(learned)
    if view.note:
        print(f"note: {view.note}")
    return 0
