"""Show the board of a running server: each worker's state and memory."""

from __future__ import annotations

import argparse
from dataclasses import replace

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
    from cowpreload import served, warmings
    from cowpreload.cli import who
    from cowpreload.shapes import shapes

    board = who.server(arguments.who)
    workers = [replace(each, pid=board.seen(each.pid)) for each in board]
    master = board.seen(board.master_pid)
    print(board_table(master, workers))
    warmed = warmed_lines(warmings.read(board), warmings.total_pss(workers, master))
    if warmed:
        print(warmed)
    pages = shapes(served.read(board))
    learned = learned_line(served.noted(board), pages, served.withheld(board))
    if learned:
        print(learned)
    note = who.in_our_pids(board)
    if note:
        print(f"note: {note}")
    return 0
