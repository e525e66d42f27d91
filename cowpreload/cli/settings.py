"""Print every setting with its names, default and reason, as Markdown."""

from __future__ import annotations

import argparse

from cowpreload.kinds import GUNICORN
from cowpreload.settings import DECLARED

HELP = "list all settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def table() -> str:
    """The table of docs/settings.md."""
    lines = [
        "| option and ini | gunicorn.conf.py | environment | default | meaning | why "
        "this default |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in DECLARED:
        kind = " or ".join(each.choices) if each.choices else each.kind.name.upper()
        file = f"`{each.variable}`" if GUNICORN in each.hosts else "-"
        alone = f" ({each.hosts[0]} alone)" if len(each.hosts) == 1 else ""
        lines.append(
            f"| `{each.option}` {kind}{alone} | {file} | `{each.environment}` "
            f"| {each.shown_default} | {each.help} | {each.why} |"
        )
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    print(table())
    return 0
