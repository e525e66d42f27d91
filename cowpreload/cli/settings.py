"""Print every setting with its names, default and meaning."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Final

from cowpreload.kinds import CELERY, Declared
from cowpreload.settings import DECLARED

HELP = "list all settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


_NAMES = (
    "Each name is an option (--cow-strikes), a key of uWSGI's ini (cow-strikes), a "
    "name in gunicorn.conf.py and on Celery's app.conf (cow_strikes) and a variable of "
    "the environment (COW_STRIKES)."
)


def _takes(each: Declared) -> str:
    return " or ".join(each.choices) if each.choices else each.kind.name.upper()


def _alone(each: Declared) -> str:
    if len(each.hosts) == 1:
        return f" ({each.hosts[0]} alone)"
    return "" if CELERY in each.hosts else " (not on Celery)"


# Each begins with the setting that is named, in the order of settings.py.
_GROUPS: Final = {
    "max_private": "Limits",
    "warmup": "Warm up",
    "fork_safety": "The heap and the fork",
    "exit": "Workers",
}


def groups() -> list[tuple[str, list[Declared]]]:
    """The settings by what they are about, in the order of their declaration."""
    found: list[tuple[str, list[Declared]]] = []
    for each in DECLARED:
        if each.attribute in _GROUPS:
            found.append((_GROUPS[each.attribute], []))
        found[-1][1].append(each)
    return found


def text(width: int) -> str:
    """All settings for a reader, in lines of `width` characters at most."""
    lines = textwrap.wrap(_NAMES, width)
    indent = " " * 4
    for title, settings in groups():
        lines += ["", f"{title}:"]
        for each in settings:
            head = f"{each.option} {_takes(each)}, default {each.shown_default}"
            lines += ["", *textwrap.wrap(head + _alone(each), width)]
            lines += textwrap.wrap(
                each.help, width, initial_indent=indent, subsequent_indent=indent
            )
    return "\n".join(lines)


def table() -> str:
    """The tables of docs/settings.md, in Markdown."""
    lines: list[str] = []
    for title, settings in groups():
        lines += [
            f"## {title}",
            "",
            "| setting | default | meaning | why this default |",
            "| --- | --- | --- | --- |",
        ]
        for each in settings:
            lines.append(
                f"| `{each.option}` {_takes(each)}{_alone(each)} "
                f"| {each.shown_default} | {each.help} | {each.why} |"
            )
        lines.append("")
    return "\n".join(lines[:-1])


def run(arguments: argparse.Namespace) -> int:
    """Print them, as wide as the terminal is."""
    print(text(max(40, shutil.get_terminal_size().columns)))
    return 0
