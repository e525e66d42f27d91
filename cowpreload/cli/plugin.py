"""Compile the uWSGI plugin for one uwsgi binary and print the ini lines to add.

Or remove what was compiled, which `pip uninstall` knows nothing of.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from pathlib import Path

from cowpreload.plugin_build import PLUGIN_FILE, build, missing

HELP = "build the uWSGI plugin, or remove it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`build` or `remove`, the binary, and where the result is."""
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("build", help="compile it for one uwsgi binary")
    verb.add_argument(
        "--uwsgi",
        metavar="PATH",
        help="the binary (default: beside this interpreter, else on PATH)",
    )
    gone = verbs.add_parser("remove", help="remove what was built")
    for each, what in ((verb, "goes"), (gone, "was put")):
        each.add_argument(
            "--output",
            metavar="DIRECTORY",
            type=Path,
            default=Path(sys.prefix) / "lib" / "cowpreload",
            help=f"where {PLUGIN_FILE} {what} (default: %(default)s)",
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
    """Do it; progress on stderr, ini lines alone on stdout."""
    output: Path = arguments.output.resolve()
    if arguments.verb == "remove":
        return _remove(output)
    binary = find_uwsgi(arguments.uwsgi)
    if binary is None:
        lacks = missing()
        print(
            f"cowpreload: uwsgi={arguments.uwsgi or ''}: no such binary; "
            f"{lacks and f'{lacks}; then '}"
            "pip install 'cowpreload[uwsgi]', or give --uwsgi PATH",
            file=sys.stderr,
        )
        return 1
    print(f"cowpreload: building for {binary}", file=sys.stderr)
    lines = build(binary, output)
    print(f"cowpreload: wrote {output / PLUGIN_FILE}", file=sys.stderr)
    print(*lines, "cow-max-private = 200M", sep="\n")
    return 0


def _remove(output: Path) -> int:
    """Remove the file, and its directory if nothing else is in it."""
    made = output / PLUGIN_FILE
    try:
        made.unlink()
    except FileNotFoundError:
        print(
            f"cowpreload: output={output}: no {PLUGIN_FILE} there; "
            "give --output the plugins-dir of your ini",
            file=sys.stderr,
        )
        return 1
    with contextlib.suppress(OSError):
        output.rmdir()  # refused where others put theirs
    print(
        f"cowpreload: removed {made}; remove these lines from your ini too, "
        "and those that begin with cow-",
        file=sys.stderr,
    )
    print(f"plugins-dir = {output}", "need-plugin = cow", sep="\n")
    return 0
