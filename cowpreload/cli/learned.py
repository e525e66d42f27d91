"""What a running server has learned from its traffic; a part of `cowpreload warmup`."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cowpreload.candidates import Served, Shape
from cowpreload.errors import NotFoundError
from cowpreload.paths import in_full
from cowpreload.report.learned import learned_json, learned_list, learned_table
from cowpreload.warmup_file import load, store
from cowpreload.warmup_lines import compose, parse

if TYPE_CHECKING:
    from cowpreload.about import About

_LISTS = (".ini", ".py")


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
    pages = served.read(board)
    if file.endswith(_LISTS):
        _write_list(file, _parted(pages, told)[0])
    elif file:
        owner = os.stat(f"/proc/{board.seen(board.master_pid) or board.holder}")
        _write_file(file, pages, told, (owner.st_uid, owner.st_gid))
    else:
        found, left_out = _parted(pages, told)
        show = learned_json if as_json else learned_table
        print(show(served.noted(board), found, left_out, served.withheld(board)))
    return 0


def _parted(
    noted: Iterable[Served], told: About, off: Collection[str] = ()
) -> tuple[list[Shape], dict[str, str]]:
    """The pages that a server warms, and why not the others, by their paths in full."""
    from cowpreload.routes import why_not_again
    from cowpreload.shapes import shapes

    skip, prefix = told.skip or (), told.prefix
    pages, reasons = [], {}
    for each in noted:
        page = replace(each, path=in_full(prefix, each.path))
        reasons[page.path] = why_not_again(each.path, skip, prefix)
        pages.append(page)
    found = shapes((each for each in pages if not reasons[each.path]), off=off)
    others = shapes(each for each in pages if reasons[each.path])
    return found, {each.path: reasons[each.path] for each in others}


def _write_list(file: str, found: Sequence[Shape]) -> None:
    """The setting; over one that this command has written, and nothing else.

    Raises:
        NotFoundError: the file is another's, or cannot be written.
    """
    path, ini = os.path.abspath(file), file.endswith(".ini")
    loaded = load(path)
    fault = loaded.fault
    lines = loaded.text.splitlines()
    ours = [b"cow-warmup = "] if ini else [b"cow_warmup = [", b"    ", b"]"]
    if not fault and not all(any(map(each.startswith, ours)) for each in lines):
        fault = "has more than this setting; name another, and include it"
    if not fault:
        fault = _stored(path, learned_list(found, ini=ini).encode())
    if fault:
        raise NotFoundError(f"write={file}: {fault}")


def _write_file(
    file: str, noted: Iterable[Served], told: About, owner: tuple[int, int]
) -> None:
    """A warm-up file: with what is the operator's in the one that is there, what it
    switches off, and the pages that this server has not noted.

    Args:
        owner: uid and gid of the server's master.

    Raises:
        NotFoundError: the file is no such, of another application, or cannot be
            written.
    """
    from cowpreload.routes import MOST
    from cowpreload.shapes import shapes

    path = os.path.abspath(file)
    loaded = load(path, owner[0])
    kept = parse(loaded.text)
    fault = loaded.fault or kept.refused or kept.of_another(told.application)
    if not fault:
        off = kept.off_paths
        found = _parted(noted, told, off)[0]
        known = {(each.host, each.shape) for each in found}
        for each in shapes(kept.learned, off=off):
            if (each.host, each.shape) not in known:
                found.append(each)
        found.sort(key=lambda each: -each.count)
        pages = [Served(each.path, each.host, each.count) for each in found[:MOST]]
        text = compose(told.application or kept.application, kept.own, pages)
        # Root writes it for a server that could not read root's.
        fault = _stored(path, text, owner if os.geteuid() == 0 else None)
    if fault:
        raise NotFoundError(f"write={file}: {fault}")


def _stored(path: str, text: bytes, owner: tuple[int, int] | None = None) -> str:
    fault = store(path, text, owner)
    return f"{fault}; name another" if fault else ""
