"""What a server says of itself on its board, for the command line.

The master writes it before the first fork, and at a reload; another process of the same
user reads it. Nothing in the server depends on it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from cowpreload._core import ffi
from cowpreload.board import Board
from cowpreload.texts import printable


@dataclass(frozen=True)
class About:
    """How a warm up of this server goes, beside what it has noted.

    Attributes:
        application: its name, as the host was given it.
        prefix: SCRIPT_NAME, which the paths on the board do not have.
        skip: `warmup-skip`; None: the board has no room for it.
    """

    application: str = ""
    prefix: str = ""
    skip: tuple[str, ...] | None = ()


def write(board: Board, about: About) -> None:
    """Put it on the board; paths to skip only if all of them have room."""
    raw = board.raw.about
    raw.length = 0  # for whoever reads meanwhile
    room = ffi.sizeof(raw.text)
    for skip in (about.skip, None):
        text = json.dumps({**asdict(about), "skip": skip}).encode()
        if len(text) <= room:
            ffi.memmove(raw.text, text, len(text))
            raw.length = len(text)
            return


def read(board: Board) -> About:
    """What is there, in printable text; of what is not, what most servers have."""
    raw = board.raw.about
    length = min(int(raw.length), ffi.sizeof(raw.text))
    try:
        found = json.loads(bytes(ffi.buffer(raw.text, length)))
        skip = found["skip"]
        return About(
            printable(str(found["application"])),
            printable(str(found["prefix"])),
            None if skip is None else tuple(printable(str(each)) for each in skip),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return About()
