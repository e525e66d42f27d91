"""Compile the uWSGI plugin for one uwsgi binary and print the ini lines to add."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from cowpreload.plugin_build import PLUGIN_FILE, build

HELP = "build the uWSGI plugin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`build`, the binary, and where to put the result."""
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("build", help="compile it for one uwsgi binary")
    verb.add_argument(
        "--uwsgi",
        metavar="PATH",
        help="the binary (default: beside this interpreter, else on PATH)",
    )
    verb.add_argument(
        "--output",
        metavar="DIRECTORY",
        type=Path,
        default=Path(sys.prefix) / "lib" / "cowpreload",
        help=f"where {PLUGIN_FILE} goes (default: %(default)s)",
    )


def find_uwsgi(given: str | None) -> str | None:
    """The path of the binary, or None."""
    if given:
        return shutil.which(given)
    beside = Path(sys.executable).parent / "uwsgi"
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("uwsgi")


def run(arguments: argparse.Namespace) -> int:
    """Build it; progress on stderr, the ini lines alone on stdout."""
    binary = find_uwsgi(arguments.uwsgi)
    output: Path = arguments.output.resolve()
    if binary is None:
        print(
            f"cowpreload: uwsgi={arguments.uwsgi or ''}: no such binary; "
            "pip install 'cowpreload[uwsgi]', or give --uwsgi PATH",
            file=sys.stderr,
        )
        return 1
    print(f"cowpreload: building for {binary}", file=sys.stderr)
    lines = build(binary, output)
    print(f"cowpreload: wrote {output / PLUGIN_FILE}", file=sys.stderr)
    print(*lines, "cow-max-private = 200M", sep="\n")
    return 0
