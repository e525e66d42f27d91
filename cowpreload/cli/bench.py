"""Repeat the documents' experiments on this machine: figures, tables and plots."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "measure what is shared, mode by mode, on real servers"
_NAMES = ("allocators", "caches", "cpu", "instagram", "learn", "nelson", "scale")


def _name(text: str) -> str:
    # Not `choices`: with nargs="*" argparse checks the empty default against them.
    if text not in _NAMES:
        raise argparse.ArgumentTypeError(
            f"scenario={text}: no such scenario; write {', '.join(_NAMES)}"
        )
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The scenarios, their size, where the results go."""
    parser.add_argument(
        "scenario",
        nargs="*",
        type=_name,
        help=f"{', '.join(_NAMES)} (default: all)",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        dest="size",
        action="store_const",
        const="quick",
        default="full",
        help="smaller numbers, below 5 minutes in all: for a first look only",
    )
    size.add_argument(
        "--tiny",
        dest="size",
        action="store_const",
        const="tiny",
        default="full",
        help=argparse.SUPPRESS,  # for tests of the bench itself
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path("cowpreload-bench"),
        help="where JSON and PNG files go (default: ./%(default)s)",
    )
    parser.add_argument(
        "--pypy",
        metavar="PATH",
        help="a PyPy for `nelson`, or none (default: pypy3 on PATH, full runs only)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run them; the tables on stdout, progress on stderr."""
    from cowpreload.bench import run as bench
    from cowpreload.bench.scenarios import Options

    names = arguments.scenario or _NAMES
    options = Options(pypy=arguments.pypy)
    return bench.run(names, arguments.size, arguments.output.resolve(), options)
