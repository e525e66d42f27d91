"""What a running server has learned from its traffic: a table, JSON, a list to write.

Takes Shape records; gives texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from urllib.parse import quote

from cowpreload.candidates import Shape

# What may stand in a path of an ini, beside letters and digits.
_PLAIN = "/%:!&'*+;="


def learned_line(noted: int, shapes: Sequence[Shape], withheld: int = 0) -> str:
    """One line; empty where nothing is known. `withheld` carried a login."""
    if not noted and not withheld:
        return ""
    line = f"traffic: {len(shapes)} kinds of pages in {noted} noted requests"
    if withheld:
        line += f"; {withheld} more carried a login (cow-warmup-private)"
    return line


def learned_table(
    noted: int,
    shapes: Sequence[Shape],
    left_out: Mapping[str, str],
    withheld: int = 0,
) -> str:
    """One line a kind of page, the most requested first; `left_out`: path and why."""
    if not shapes and not left_out and not withheld:
        return (
            "no request was noted; noted are GETs without a query and without a login, "
            "answered with 200, of a server with cow-warmup = auto or a cow-warmup-file"
        )
    hosts = {each.host for each in shapes}
    lines = [learned_line(noted, shapes, withheld)]
    lines += [f"{'requests':>8}  path"] if shapes else []
    for each in shapes:
        host = f"  {each.host}" if len(hosts) > 1 else ""
        kind = f"  ({each.shape})" if each.shape != each.path else ""
        lines.append(f"{each.count:>8}  {each.path}{kind}{host}")
    lines += [f"left out: {path}: {reason}" for path, reason in left_out.items()]
    return "\n".join(lines)


def learned_json(
    noted: int,
    shapes: Sequence[Shape],
    left_out: Mapping[str, str],
    withheld: int = 0,
) -> str:
    """The same for a program."""
    pages = [asdict(each) for each in shapes]
    left = [{"path": path, "reason": reason} for path, reason in left_out.items()]
    counts = {"noted": noted, "withheld": withheld}
    made = {"version": 1, **counts, "shapes": pages, "left_out": left}
    return json.dumps(made, indent=2)


def _in_ini(path: str) -> str:
    """The same path to an application, and nothing else to uWSGI.

    It opens the file, and runs the program, that a value names: `@(exec://...)`. It
    puts variables in, `$(HOME)`, and what a percent sign names. Visitors chose these
    paths.
    """
    return quote(path, safe=_PLAIN, encoding="latin-1").replace("%", "%%")


def learned_list(shapes: Sequence[Shape], ini: bool) -> str:
    """The paths as the setting: lines of an `ini`, or of a gunicorn.conf.py."""
    paths = list(dict.fromkeys(each.path for each in shapes))
    if ini:
        return "".join(f"cow-warmup = {_in_ini(path)}\n" for path in paths)
    lines = "".join(f"    {path!r},\n" for path in paths)
    return f"cow_warmup = [\n{lines}]\n"
