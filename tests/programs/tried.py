"""A WSGI application with a table that is read, for `cowpreload try`."""

import itertools
import os
import sys
import uuid

TABLE = {str(number): [f"entry {number}"] for number in range(40_000)}
IN_MASTER = os.getpid()
_counter = itertools.count()


def application(environ, start_response):
    path = environ["PATH_INFO"]
    status, body = "200 OK", b""
    if path == "/":
        body = f"{sum(len(TABLE[key]) for key in TABLE)} entries".encode()
    elif path == "/token":  # as a form has one: it varies by itself
        body = f"<input value={uuid.uuid4().hex}> <b>form</b>".encode()
    elif path == "/preloaded":  # what an application sees of who loaded it
        body = b"by another" if os.getpid() != IN_MASTER else b"by myself"
    elif path == "/broken":
        print("tried: no table named 'orders'", file=sys.stderr)
        status, body = "500 Internal Server Error", b"broken"
    else:
        status, body = "404 Not Found", b"nothing here"
    start_response(status, [("Content-Length", str(len(body)))])
    return [body]


def refused(environ, start_response):
    """Every page needs a database that is not there."""
    print("tried: could not connect to server: 127.0.0.1:5432", file=sys.stderr)
    start_response("500 Internal Server Error", [("Content-Length", "0")])
    return [b""]


def create(name):
    raise RuntimeError(f"tried: no configuration named {name!r}")
