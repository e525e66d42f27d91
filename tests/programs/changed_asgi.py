"""gunicorn's ASGI worker as another version may have it; CHANGED names what raises."""

import os
from typing import Any

from gunicorn.asgi.protocol import ASGIProtocol

asgi_loop = "asyncio"
_changed = os.environ["CHANGED"]


def _raise(*arguments: Any) -> None:
    raise AttributeError(f"no {_changed} in this version")


if _changed == "_keepalive_timeout":
    ASGIProtocol._keepalive_timeout = _raise


def post_worker_init(worker: Any) -> None:
    if _changed == "remove_reader":
        worker.loop.remove_reader = _raise
