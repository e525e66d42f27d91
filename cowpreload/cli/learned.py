"""What a running server has learned from its traffic; a part of `cowpreload warmup`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cowpreload.report.learned import learned_json, learned_list, learned_table


def show_learned(who: str, *, as_json: bool = False, file: str = "") -> int:
    """Print what the server `who` has noted; with `file`, write it there as a list.

    A name that ends in `.ini` gets lines for uWSGI, any other one for gunicorn.
    """
    from cowpreload import served
    from cowpreload.cli.who import server
    from cowpreload.routes import why_not_again
    from cowpreload.shapes import shapes

    board = server(who)
    noted, pages = served.noted(board), served.read(board)
    reasons = {each.path: why_not_again(each.path) for each in pages}
    found = shapes(each for each in pages if not reasons[each.path])
    others = shapes(each for each in pages if reasons[each.path])
    left_out = {each.path: reasons[each.path] for each in others}
    if file:
        _write(Path(file), learned_list(found, ini=file.endswith(".ini")))
    else:
        show = learned_json if as_json else learned_table
        print(show(noted, found, left_out, served.withheld(board)))
    return 0


def _write(path: Path, text: str) -> None:
    """Whole or not at all, for its owner alone: paths can tell of people."""
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(fd, "w") as made:
            made.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
