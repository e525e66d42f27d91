"""An application in whose master everything fails that runs unasked before the fork."""

from __future__ import annotations

from typing import Any

from cowpreload import about, warmings
from cowpreload.hosts import turns


def fails(*arguments: Any, **named: Any) -> None:
    raise RuntimeError("unasked")


about.write = warmings.add = turns.choose = fails  # type: ignore[assignment]


def application(environ, start_response):  # type: ignore[no-untyped-def]
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
