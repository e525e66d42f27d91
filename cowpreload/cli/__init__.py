"""The command line: parse, run one command, print its error, choose the exit code.

Nothing else in the package prints an error and exits. Each command is a module with
`HELP`, `add_arguments(parser)` and `run(arguments) -> int`; `FAILED` is the exit code
of an error, where it is not 1.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from cowpreload._version import __version__
from cowpreload.cli import (
    bench,
    completion,
    doctor,
    exporter,
    plot,
    plugin,
    record,
    settings,
    status,
    top,
    tryout,
    warmup,
    why,
)
from cowpreload.errors import CowError

COMMANDS = {
    "bench": bench,
    "completion": completion,
    "doctor": doctor,
    "exporter": exporter,
    "plot": plot,
    "plugin": plugin,
    "record": record,
    "settings": settings,
    "status": status,
    "top": top,
    "try": tryout,
    "warmup": warmup,
    "why": why,
}


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="cowpreload",
        description="Workers that keep sharing their master's memory.",
    )
    top.add_argument("--version", action="version", version=__version__)
    verbs = top.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        verb = verbs.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(verb)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0, 1 with one error on stderr, or 128 + a signal.

    A bug is no error of the user's: any other exception keeps its traceback.
    """
    arguments = parser().parse_args(argv)
    try:
        code: int = COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of stdout left. Python flushes it once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        return 128 + signal.SIGPIPE
    except CowError as error:
        text = str(error)
    except OSError as error:
        text = str(error.strerror or error)
        if error.filename is not None:
            text = f"{os.fsdecode(error.filename)}: {text}"
    print(f"cowpreload: {text}", file=sys.stderr)
    return int(getattr(COMMANDS[arguments.command], "FAILED", 1))
