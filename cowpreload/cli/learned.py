"""What a running server has learned from its traffic; a part of `cowpreload warmup`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cowpreload.candidates import Served, Shape
from cowpreload.errors import NotFoundError
from cowpreload.report.learned import learned_json, learned_list, learned_table
from cowpreload.warmup_file import store
from cowpreload.warmup_lines import compose, plain_path

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
    from cowpreload.routes import why_not_again
    from cowpreload.shapes import shapes

    board = server(who)
    told = about.read(board)
    if told.skip is None:
        print("note: the server's warmup-skip is too long to be known", file=sys.stderr)
    skip = told.skip or ()
    noted, pages = served.noted(board), served.read(board)
    reasons = {each.path: why_not_again(each.path, skip, told.prefix) for each in pages}
    found = shapes(each for each in pages if not reasons[each.path])
    others = shapes(each for each in pages if reasons[each.path])
    left_out = {each.path: reasons[each.path] for each in others}
    if file:
        write(file, found, told)
    else:
        show = learned_json if as_json else learned_table
        print(show(noted, found, left_out, served.withheld(board)))
    return 0


def write(file: str, found: Sequence[Shape], about: About) -> None:
    """Whole or not at all, for its owner alone: paths can tell of people.

    Raises:
        NotFoundError: the file cannot be written.
    """
    if file.endswith((".ini", ".py")):
        text = learned_list(found, ini=file.endswith(".ini")).encode()
    else:
        pages = [
            Served(
                about.prefix + plain_path(each.path.encode("latin-1")),
                each.host,
                each.count,
            )
            for each in found
        ]
        text = compose(about.application, (), pages)
    fault = store(os.path.abspath(file), text)
    if fault:
        raise NotFoundError(f"write={file}: {fault}; name another")
