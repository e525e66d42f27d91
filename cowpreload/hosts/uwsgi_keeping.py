"""uWSGI's master and its warm-up file: which one it is, and when it is written.

Takes the settings; keeping.py does the rest, on either host. Main interpreter only.
Must not raise.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cowpreload import about
from cowpreload.about import About
from cowpreload.board import Board
from cowpreload.candidates import Found
from cowpreload.hosts import uwsgi_turn
from cowpreload.hosts.unasked import unasked
from cowpreload.hosts.uwsgi_apps import say, say_raised
from cowpreload.hosts.uwsgi_plugin import plugin
from cowpreload.interface import name_as_given
from cowpreload.settings import Settings

if TYPE_CHECKING:
    from cowpreload.hosts.keeping import Keeping

# The options that say what is served.
_NAMES = ("module", "wsgi", "wsgi-file", "file", "mount")

_keeping: list[Keeping] = []


def _application() -> str:
    """What the ini calls the application, or the applications."""
    given = ",".join(text for name in _NAMES for text in _option(name))
    return name_as_given(":".join((given, *_option("callable"))))


def _option(name: str) -> list[str]:
    """The texts that the ini gives."""
    value = sys.modules["uwsgi"].opt.get(name, ())
    values = value if isinstance(value, (list, tuple)) else (value,)
    return [each.decode(errors="replace") for each in values if isinstance(each, bytes)]


def begin(settings: Settings) -> None:
    """Before the applications are loaded, which may change the directory."""
    if settings.warmup_file is None:
        return
    with unasked("warm-up file", say_raised):
        from cowpreload.hosts.keeping import Keeping  # it imports what few need

        interval, skip = settings.check_interval, settings.warmup_skip
        file = settings.warmup_file
        _keeping.append(Keeping(file, _application(), say, interval, skip))


def found(mounts: Sequence[str]) -> Found | None:
    """The pages of the file; None if there is none.

    The mounts, and the uid of the workers, are known from now.
    """
    for keeping in _keeping:
        keeping.mounts, keeping.uid = mounts, plugin().uid()
        return keeping.found()
    return None


def off() -> Collection[str]:
    """The paths that the file switches off, as it is now."""
    return [path for keeping in _keeping for path in keeping.off()]


def serve(board: Board, settings: Settings) -> None:
    """Right before the first fork: write it at the master's turns, and at its end."""
    with unasked("what the command line is told", say_raised):
        about.write(board, About(_application(), "", settings.warmup_skip))
    for keeping in _keeping:
        uwsgi_turn.each_turn(partial(keeping.turn, board))
        uwsgi_turn.at_end(partial(keeping.end, board))
