"""graceful_timeout as gunicorn documents it, with our exit handlers within it.

When it is over, the master kills what still lives. Workers that can give requests up
by themselves (gevent, asyncio) do it a little earlier, so that their exit handlers run.
"""

from __future__ import annotations

from typing import Any

# For the lifespan's shutdown and the exit handlers, in seconds.
RESERVE = 2

# A connection that has not sent a byte (browsers connect ahead) is not waited for
# longer than this, in seconds, and the keepalive timeout.
LINGER = 2.0


def for_requests(graceful_timeout: int) -> int:
    """Seconds that a worker waits for its requests after it was told to go."""
    return max(graceful_timeout - RESERVE, 1)


def for_idle(cfg: Any) -> float:
    """Seconds that idle connections get to send one more request."""
    return float(min(cfg.keepalive + LINGER, for_requests(cfg.graceful_timeout)))


def end_before_the_kill(cfg: Any, more: int = 0) -> None:
    """In a worker: make gunicorn's own wait for requests end before the master's.

    Args:
        more: seconds that this worker class needs to give its requests up.
    """
    setting = cfg.settings["graceful_timeout"]
    setting.value = for_requests(setting.value - more)
