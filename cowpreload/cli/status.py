"""Show the board of a running server: each worker's state and memory."""

from __future__ import annotations

import argparse

from cowpreload.report.text import board_table

HELP = "show the workers of a running server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The server, where there is more than one."""
    parser.add_argument(
        "pid",
        type=int,
        nargs="?",
        help="a master's or worker's pid (default: the only)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print one table."""
    from cowpreload.board import only_master, open_board

    pid = arguments.pid
    if pid is None:
        pid = only_master("name one master's pid")
    board = open_board(pid)
    print(board_table(board.master_pid, list(board)))
    return 0
