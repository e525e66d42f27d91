"""An application that has uWSGI's master do something at its turns, and at its end.

MISSING=1: what the plugin is to call is not there.
"""

from __future__ import annotations

import os
import sys

from cowpreload.hosts import uwsgi_turn


def say(text: str) -> None:
    os.write(2, f"{text} in {os.getpid()}\n".encode())


def leave() -> None:
    say("leaves")
    sys.exit(3)


uwsgi_turn.each_turn(leave)
uwsgi_turn.each_turn(lambda: say("turn"))
uwsgi_turn.at_end(leave)
uwsgi_turn.at_end(lambda: say("end"))
if os.environ.get("MISSING"):
    del uwsgi_turn.turn


def application(environ, start_response):  # type: ignore[no-untyped-def]
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
