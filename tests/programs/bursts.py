"""A WSGI application that takes memory in several ways, each as fast as it can."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

MIB = 1 << 20
KEPT: list[object] = []


def one(mb: int) -> None:
    """One allocation, filled by one call into C."""
    KEPT.append(bytearray(b"x") * (mb * MIB))


def touched(mb: int) -> None:
    """One allocation, page by page, with the lock of Python's given up in between."""
    memory = bytearray(mb * MIB)
    KEPT.append(memory)
    for at in range(0, len(memory), 4096):
        memory[at] = 1


def small(mb: int) -> None:
    """Many strings."""
    KEPT.append([f"{i:0980}" for i in range(mb * 1024)])


def slow(mb: int) -> None:
    """50 MB a second."""
    for _ in range(mb):
        KEPT.append(bytearray(b"x") * MIB)
        time.sleep(0.02)


def filled(mb: int) -> None:
    """An array of ones; one that is there already takes no second to be imported."""
    import numpy

    KEPT.append(numpy.ones(mb * MIB // 8))


WAYS = {each.__name__: each for each in (one, touched, small, slow, filled)}


def application(
    environ: dict[str, Any], start_response: Callable[..., object]
) -> Iterable[bytes]:
    given = parse_qs(environ["QUERY_STRING"])
    way = WAYS.get(environ["PATH_INFO"][1:])
    if way is not None:
        way(int(given["mb"][0]))
    body = str(os.getpid()).encode()
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers)
    return [body]
