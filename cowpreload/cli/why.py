"""Name, page by page and summed up, why a worker's memory is no longer shared.

The worker serves on: its bytes are read from a still copy, a fork that runs nothing.
docs/why.md explains the report.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from cowpreload.cli import needs
from cowpreload.errors import NotFoundError
from cowpreload.report.why import SHOWN, why_json, why_text
from cowpreload.why.booking import EXAMPLES

HELP = "say why a worker's memory is private"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The worker, and what to write."""
    from cowpreload.cli import who

    who.add_argument(
        parser, "default: the worker with most private memory of the only server"
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="make no still copy: read the worker while it runs",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")
    parser.add_argument(
        "--png",
        type=_picture,
        metavar="FILE",
        help="draw the address space (needs the extra plot)",
    )
    parser.add_argument(
        "--examples",
        type=_examples,
        default=SHOWN,
        metavar="N",
        help=f"for each cause, at most {EXAMPLES} (default: {SHOWN})",
    )


def _examples(text: str) -> int:
    if not text.isdecimal() or int(text) > EXAMPLES:
        raise argparse.ArgumentTypeError(
            f"examples={text}: is 0 to {EXAMPLES}; write a number of these"
        )
    return int(text)


def _picture(text: str) -> Path:
    """Refuse, before a worker is read, a file that could not be written after it."""
    path = Path(text)
    if path.suffix != ".png":
        raise argparse.ArgumentTypeError(f"png={text}: ends in .png; rename it")
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"png={text}: needs a folder that can be written; make {folder}, or name "
            "another file"
        )
    return path


def run(arguments: argparse.Namespace) -> int:
    """Print one report; progress on stderr, where that is a terminal."""
    from cowpreload.cli import who
    from cowpreload.why.advice import advise
    from cowpreload.why.examine import examine
    from cowpreload.why.locate import locate

    if arguments.png:
        needs.matplotlib("png")
    pid = who.worker(arguments.who)
    if pid == os.getpid():
        raise NotFoundError(f"pid={pid}: is this command; name a worker")
    ours = bool(locate(pid).slot)

    def say(text: str) -> None:
        if sys.stderr.isatty():
            print(f"why: {text}", file=sys.stderr, flush=True)

    sharing = examine(pid, live=arguments.live, progress=say)
    advice = advise(sharing)
    if arguments.json:
        print(why_json(sharing, advice))
    else:
        print(why_text(sharing, advice, arguments.examples, ours=ours))
    if arguments.png:
        from cowpreload.report.picture import draw

        draw(sharing, arguments.png)
        say(f"wrote {arguments.png}")
    return 0
