"""uWSGI's master and its event log: opened at the start, written at its turns and end.

Main interpreter only. The start is refused where the file cannot be opened; a reload
is not: the server runs, and serves on without.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from cowpreload.board import Board
from cowpreload.event_log import EVENT_LOG, end, fault, tell
from cowpreload.hosts import uwsgi_turn
from cowpreload.hosts.telling import Workers
from cowpreload.hosts.uwsgi_apps import say
from cowpreload.kinds import UWSGI
from cowpreload.lifecycle import Start
from cowpreload.settings import Settings


def version() -> str:
    """uWSGI's own."""
    given = getattr(sys.modules.get("uwsgi"), "version", b"")
    return given.decode(errors="replace") if isinstance(given, bytes) else str(given)


def begin(settings: Settings, fd: int) -> bool:
    """Open it and say the settings; False: the start is refused, and why was said.

    Args:
        fd: the file, opened by the plugin before privileges were dropped; -1: not yet.
    """
    refused = ""
    if settings.event_log is not None:
        try:
            EVENT_LOG.open(settings.event_log, say, fd)
        except OSError as error:
            refused = fault(settings.event_log, error)
    if refused and os.environ.get("UWSGI_RELOADS", "0") == "0":
        say("cow: the settings are refused:")
        say(f"cow:   {refused}")
        return False
    if refused:
        say(f"cow: {refused}: serving on without")
    tell(Start(settings, UWSGI, version()), say)
    return True


def serve(board: Board) -> None:
    """Right before the first fork: say what happens to workers, from turn to turn."""
    # uWSGI says itself when it starts a worker, and its log has no levels.
    workers = Workers(say, say, lambda line: None)
    uwsgi_turn.each_turn(partial(workers.look_at_all, board))
    uwsgi_turn.when_told_to_go(partial(workers.look_at_all, board))
    uwsgi_turn.at_end(partial(workers.look_at_all, board))
    uwsgi_turn.at_end(end)
