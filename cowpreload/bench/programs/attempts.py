"""The example site, started as an attempt of the Instagram article starts it.

BENCH_ATTEMPT says how: `plain`; `disable`: gc.disable(); `threshold`:
gc.set_threshold(0); `threshold-exit`: that, and os._exit as the last exit handler,
which is the article's final form. In every attempt the site uses a library that pauses
the collector while it builds objects and then calls gc.enable(), as msgpack did.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

ATTEMPT = os.environ.get("BENCH_ATTEMPT", "plain")
if ATTEMPT == "disable":
    gc.disable()
elif ATTEMPT.startswith("threshold"):
    gc.set_threshold(0)
if ATTEMPT == "threshold-exit":
    # The first to be registered runs last: what the site registers runs before it.
    atexit.register(os._exit, 0)

_site: Callable[..., Iterable[bytes]] = import_module("shop.wsgi").application


def unpack(text: str) -> Any:
    """Read a small message, as a library would that was not asked about the rest."""
    gc.disable()
    try:
        return json.loads(text)
    finally:
        gc.enable()


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """The site, and `/bench/collector`: what the collector's state is in a worker."""
    if environ["PATH_INFO"] == "/bench/collector":
        state = {"enabled": gc.isenabled(), "threshold": gc.get_threshold()}
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(state).encode()]
    unpack('{"session": [1, 2, 3]}')
    return _site(environ, start_response)
