"""Leave: end a worker without finalizing the heap it shares.

Takes an exit code; does not return. Python's own finalization clears modules and
frees objects, that is, it writes to pages that all workers share. What users rely
on at exit is done first, in Python's order.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading

from cowpreload import writers
from cowpreload.threads import join_others


def exit_code(exception: BaseException | None) -> int:
    """The code that the interpreter would exit with for this exception in flight."""
    if exception is None:
        return 0
    if not isinstance(exception, SystemExit):
        return 1
    if exception.code is None:
        return 0
    if isinstance(exception.code, int):
        return exception.code & 0xFF
    with contextlib.suppress(BaseException):
        print(exception.code, file=sys.stderr)
    return 1


def _join_threads() -> None:
    """Wait for the non-daemon threads, as the interpreter does before atexit.

    Its own way waits for the main thread too if another one asks (a request that
    uWSGI interrupts; seen to wait for ever on 3.10 to 3.12): then it is done here.
    """
    if threading.current_thread() is threading.main_thread():
        threading._shutdown()  # type: ignore[attr-defined]
        return
    for callback in reversed(getattr(threading, "_threading_atexits", ())):
        callback()
    join_others()


def run_exit_handlers() -> None:
    """Join non-daemon threads, run every atexit callback once.

    An `os._exit` registered with atexit would skip what was registered before it,
    `logging.shutdown` among it; so the callbacks are run from here. What a signal
    handler raises meanwhile (gunicorn: SystemExit) ends one step, not the others.
    """
    with contextlib.suppress(BaseException):
        _join_threads()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()


def _flush(code: int) -> None:
    """Write what is buffered, in Python and in C, or end with `code` at a deadline."""
    # Not above: a sub-interpreter of uWSGI's must not load the core.
    from cowpreload import _core

    _core.begin_deadline(code)
    writers.flush(waiting=False)
    _core.flush_stdio()
    writers.flush(waiting=True)


def leave(code: int) -> None:
    """Run the exit handlers, write what is buffered, end the process with `code`."""
    try:
        run_exit_handlers()
    finally:
        try:
            _flush(code)
        finally:
            os._exit(code)
