"""What a running server has learned from its traffic; a part of `cowpreload warmup`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cowpreload.candidates import Served, Shape
from cowpreload.errors import NotFoundError
from cowpreload.paths import in_full
from cowpreload.report.learned import learned_json, learned_list, learned_table
from cowpreload.warmup_file import store
from cowpreload.warmup_lines import compose

if TYPE_CHECKING:
    from cowpreload.about import About


def show_learned(who: str, *, as_json: bool = False, file: str = "") -> int:
    """Print what the server `who` has noted; with `file`, write it there.

    A name that ends in `.ini` gets the setting for uWSGI, in `.py` for gunicorn; any
    other one is a warm-up file.

    Raises:
        NotFoundError: there is no such server, or the file cannot be written.
    """
    from cowpreload import about, served
    from cowpreload.cli.who import server

    board = server(who)
    told = about.read(board)
    if told.skip is None:
        print("note: the server's warmup-skip is too long to be known", file=sys.stderr)
    noted = served.noted(board)
    found, left_out = _parted(served.read(board), told)
    if file:
        write(file, found, told)
    else:
        show = learned_json if as_json else learned_table
        print(show(noted, found, left_out, served.withheld(board)))
    return 0


def _parted(noted: Iterable[Served], told: About) -> tuple[list[Shape], dict[str, str]]:
    """The pages that a server warms, and why not the others, by their paths in full."""
    from cowpreload.routes import why_not_again
    from cowpreload.shapes import shapes

    skip, prefix = told.skip or (), told.prefix
    pages, reasons = [], {}
    for each in noted:
        page = replace(each, path=in_full(prefix, each.path))
        reasons[page.path] = why_not_again(each.path, skip, prefix)
        pages.append(page)
    found = shapes(each for each in pages if not reasons[each.path])
    others = shapes(each for each in pages if reasons[each.path])
    return found, {each.path: reasons[each.path] for each in others}


def write(file: str, found: Sequence[Shape], about: About) -> None:
    """Whole or not at all, for its owner alone: paths can tell of people.

    Raises:
        NotFoundError: the file cannot be written.
    """
    if file.endswith((".ini", ".py")):
        text = learned_list(found, ini=file.endswith(".ini")).encode()
    else:
        pages = [Served(each.path, each.host, each.count) for each in found]
        text = compose(about.application, (), pages)
    fault = store(os.path.abspath(file), text)
    if fault:
        raise NotFoundError(f"write={file}: {fault}; name another")
