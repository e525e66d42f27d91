"""gunicorn's hooks: one callable each, so ours is chained to the user's."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from gunicorn.errors import HaltServer

from cowpreload.leave import exit_code


def chain(cfg: Any, name: str, ours: Callable[..., None], end: bool = False) -> None:
    """Call the user's hook, then ours; gunicorn has room for one.

    At the `end` of the master, ours is called even if the user's raises.
    """
    theirs = cfg.settings[name].get()

    def chained(server: Any, *arguments: Any) -> None:
        try:
            theirs(server, *arguments)
        except BaseException:
            if end:
                ours(server, *arguments)
            raise
        ours(server, *arguments)

    # Not through the validator: it counts the parameters of the function.
    cfg.settings[name].value = chained


def status(handled: BaseException | None) -> int:
    """What gunicorn's master is about to exit with: it is with what it is handling."""
    if handled is None or isinstance(handled, StopIteration | KeyboardInterrupt):
        return 0  # told to stop
    if isinstance(handled, HaltServer):
        return int(handled.exit_status)
    if not isinstance(handled, SystemExit):
        traceback.print_exc()  # of the user's own on_exit
    return exit_code(handled)
