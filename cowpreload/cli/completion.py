"""Print what makes bash or zsh complete this command line: commands, options, files.

Written by shtab out of the same parser that reads the command line, so that it knows
each option that there is.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from cowpreload.errors import CowError

HELP = "completion for bash or zsh"
SHELLS = ("bash", "zsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=SHELLS, help="whose completion to print")


def run(arguments: argparse.Namespace) -> int:
    """Print it on stdout."""
    try:
        import shtab
    except ImportError:
        raise CowError(
            f"shell={arguments.shell}: shtab writes it, and is not installed; "
            "pip install 'cowpreload[completion]'"
        ) from None
    from cowpreload.cli import parser

    top = parser()
    names = {"FILE": shtab.FILE, "PATH": shtab.FILE}
    names |= {"DIR": shtab.DIRECTORY, "DIRECTORY": shtab.DIRECTORY}
    for action in _actions(top):
        if action.metavar in names:
            action.complete = names[action.metavar]  # type: ignore[attr-defined]
    print(shtab.complete(top, shell=arguments.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Of the parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _actions(verb)
