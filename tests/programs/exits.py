"""Ends its process in every way that Python code has: the path says how.

Environment: EXIT_LOG, a file that exit handlers append to; with `.out` at its end, one
that is written to and not closed.
"""

from __future__ import annotations

import os
import sys
import threading

import app
import uwsgi

OUT = open(f"{app.LOG}.out", "a")


class Special(SystemExit):
    """As applications have them."""


def end(how: str) -> None:
    OUT.write(f"{os.getpid()} {how}\n")
    if how == "code":
        sys.exit(7)
    if how == "none":
        sys.exit()
    if how == "text":
        sys.exit("a text")
    if how == "subclass":
        raise Special(8)
    if how == "now":
        os._exit(9)
    if how == "thread":
        thread = threading.Thread(target=sys.exit, args=[3])
        thread.start()
        thread.join()


def application(environ, start_response):  # type: ignore[no-untyped-def]
    how = environ["PATH_INFO"].rpartition("/")[2]
    if how == "generator":

        def body():  # type: ignore[no-untyped-def]
            yield b"ok"
            end("code")

        start_response("200 OK", [])
        return body()
    end(how)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def mule() -> None:
    uwsgi.mule_get_msg()
    end("code")


def spooler(task: dict[str, bytes]) -> int:
    end("code")
    return -2


uwsgi.spooler = spooler


def order(environ, start_response):  # type: ignore[no-untyped-def]
    """Give the mule and the spooler something to do."""
    if environ["PATH_INFO"] == "/mule":
        uwsgi.mule_msg("go")
    if environ["PATH_INFO"] == "/spooler":
        uwsgi.spool({b"go": b"1"})
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
