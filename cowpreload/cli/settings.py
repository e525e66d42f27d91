"""Print every setting with its names, default and meaning."""

from __future__ import annotations

import argparse
import shutil
import textwrap

from cowpreload.kinds import GUNICORN, Declared
from cowpreload.settings import DECLARED

HELP = "list all settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


_NAMES = (
    "Each name is an option (--cow-strikes), a key of uWSGI's ini (cow-strikes), a "
    "name in gunicorn.conf.py (cow_strikes) and a variable of the environment "
    "(COW_STRIKES)."
)


def _takes(each: Declared) -> str:
    return " or ".join(each.choices) if each.choices else each.kind.name.upper()


def _alone(each: Declared) -> str:
    return f" ({each.hosts[0]} alone)" if len(each.hosts) == 1 else ""


def text(width: int) -> str:
    """All settings for a reader, in lines of `width` characters at most."""
    lines = textwrap.wrap(_NAMES, width)
    for each in DECLARED:
        head = f"{each.option} {_takes(each)}, default {each.shown_default}"
        lines += ["", *textwrap.wrap(head + _alone(each), width)]
        indent = " " * 4
        lines += textwrap.wrap(
            each.help, width, initial_indent=indent, subsequent_indent=indent
        )
    return "\n".join(lines)


def table() -> str:
    """The table of docs/settings.md, in Markdown."""
    lines = [
        "| option and ini | gunicorn.conf.py | environment | default | meaning | why "
        "this default |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in DECLARED:
        file = f"`{each.variable}`" if GUNICORN in each.hosts else "-"
        lines.append(
            f"| `{each.option}` {_takes(each)}{_alone(each)} | {file} "
            f"| `{each.environment}` | {each.shown_default} | {each.help} "
            f"| {each.why} |"
        )
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    """Print them, as wide as the terminal is."""
    print(text(max(40, shutil.get_terminal_size().columns)))
    return 0
