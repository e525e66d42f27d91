"""Threads: wait for those that this process has started.

Standard library alone: a sub-interpreter of uWSGI's, which must not load the core,
calls it at its end too.
"""

from __future__ import annotations

import threading


def join_others() -> None:
    """Wait for the non-daemon threads but the main one and the one that asks."""
    kept = (threading.main_thread(), threading.current_thread())
    for thread in threading.enumerate():
        if not thread.daemon and thread not in kept:
            thread.join()
