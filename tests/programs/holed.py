"""An application whose heap is full of holes when it has been loaded."""

from __future__ import annotations

import sys

import cowpreload


class Item:
    def __init__(self, number: int) -> None:
        self.name = f"item {number}"


HEAP = [(Item(i), bytes(600 + i % 7 * 100)) for i in range(60_000)]
del HEAP[::8]
YOUNG: list[tuple[Item, bytes]] = []


def application(environ, start_response):  # type: ignore[no-untyped-def]
    """Keep 4 MB of new objects; answer with the worker's private memory, or with the
    names of the modules that it has."""
    if environ["PATH_INFO"] == "/grow":
        YOUNG.extend((Item(i), bytes(600 + i % 7 * 100)) for i in range(3500))
    if environ["PATH_INFO"] == "/loaded":
        start_response("200 OK", [])
        return [name.encode() + b"\n" for name in sorted(sys.modules)]
    worker = cowpreload.worker()
    start_response("200 OK", [])
    return [str(worker.private if worker else 0).encode()]
