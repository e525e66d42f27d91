"""Executors that were used in the master: at rest before the fork, whole after it.

A ThreadPoolExecutor counts the threads that it has started and never looks at them
again. In a fork they are gone, it starts no others, and `submit().result()` waits for
ever. Covers subclasses, asyncio's default executors and asgiref's, which are
ThreadPoolExecutors, and ProcessPoolExecutors. A subclass may be anything: one that
never called its base's __init__ has no threads, and one that raises stops no other.

`rest` ends idle threads in the master, where what they hold (Django's connections are
one a thread) is closed properly. `renew` forgets, in a worker, the threads that the
fork has lost. Work that was queued or running then stays the master's: run by every
worker, it would be done many times; its futures never end in a worker.
"""

from __future__ import annotations

import gc
import os
import queue
import sys
import threading
import time
from types import FrameType
from typing import Any

from cowpreload.errors import RAISED

_REST_SECONDS = 1.0
_LOOK_SECONDS = 0.005
_WAITING = (queue.__file__, threading.__file__)


def _kind(module: str, name: str) -> tuple[type, ...]:
    """The class, for issubclass, if anybody has imported it."""
    found = getattr(sys.modules.get(module), name, None)
    return (found,) if found is not None else ()


def _thread_pools() -> tuple[type, ...]:
    return _kind("concurrent.futures.thread", "ThreadPoolExecutor")


def _process_pools() -> tuple[type, ...]:
    return _kind("concurrent.futures.process", "ProcessPoolExecutor")


def find() -> list[Any]:
    """Every executor of this interpreter; looks at each object that is not frozen."""
    kinds = _thread_pools() + _process_pools()
    if not kinds:
        return []
    # By type: isinstance() would look at __class__, which builds Django's lazy objects.
    return [each for each in gc.get_objects() if issubclass(type(each), kinds)]


def _waits(frame: FrameType | None) -> bool:
    """Whether a thread of an executor waits for work."""
    worker = sys.modules["concurrent.futures.thread"]._worker.__code__
    while frame is not None and frame.f_code.co_filename in _WAITING:
        frame = frame.f_back
    return frame is not None and frame.f_code is worker


def _idle(executor: Any) -> bool:
    """Whether nobody has work of this one."""
    if issubclass(type(executor), _process_pools()):
        return not executor._pending_work_items
    frames = sys._current_frames()
    return all(_waits(frames.get(each.ident or 0)) for each in executor._threads)


def _end(executor: Any) -> None:
    """End its threads, or processes, as its shutdown does; it stays usable."""
    until = time.monotonic() + _REST_SECONDS
    if issubclass(type(executor), _process_pools()):
        threads = {executor._executor_manager_thread}
        executor.shutdown(wait=False)
    else:
        threads = executor._threads
        executor._shutdown = True
        executor._work_queue.put(None)
    try:
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
    finally:
        executor._shutdown = False
    renew(executor)


def used(executor: Any) -> bool:
    """Whether it has, or believes to have, threads; one that was shut down rests."""
    if issubclass(type(executor), _thread_pools()):
        return bool(getattr(executor, "_threads", ())) and not executor._shutdown
    return getattr(executor, "_executor_manager_thread", None) is not None


def _of_greenlets(executor: Any) -> bool:
    """Whether gevent has made its threads; the fork copies them, working or not."""
    frames = sys._current_frames()
    return any(each.ident not in frames for each in getattr(executor, "_threads", ()))


def rest(executors: list[Any]) -> None:
    """In the master: end the threads of those that have nothing to do.

    Waits a second for work that is still done; what works on then is a finding of the
    audit. What the first odd one raises is raised when the others rest.
    """
    until = time.monotonic() + _REST_SECONDS
    fault: BaseException | None = None
    working = executors
    while working:
        still = []
        for executor in working:
            try:
                if _still_works(executor):
                    still.append(executor)
            except RAISED as error:
                fault = fault or error
        working = still
        if not working or time.monotonic() > until:
            break
        time.sleep(_LOOK_SECONDS)
    if fault is not None:
        raise fault


def _still_works(executor: Any) -> bool:
    """End its threads if it has nothing to do; whether to look again."""
    if not used(executor) or _of_greenlets(executor):
        return False
    if _idle(executor):
        _end(executor)
    return used(executor)


def _empty_queue(old: Any) -> Any:
    """A queue as this one, empty, whose locks nobody holds."""
    try:
        return type(old)(old.maxsize) if isinstance(old, queue.Queue) else type(old)()
    except RAISED:  # its class wants to know more
        return queue.SimpleQueue()


def _broken_by_fork(executor: Any) -> bool:
    """Whether a worker cannot use what it inherited.

    The queues of a ProcessPoolExecutor are pipes, shared by all workers even if nobody
    has used them yet.
    """
    return used(executor) or (
        issubclass(type(executor), _process_pools())
        and hasattr(executor, "_max_workers")
    )


def mend(executor: Any) -> None:
    """In a worker: make it as new if the fork has broken it."""
    if not _broken_by_fork(executor):
        return
    if used(executor) or not hasattr(executor, "__dict__"):
        renew(executor)
    else:
        _renew_at_first_use(executor)


def _renew_at_first_use(pool: Any) -> None:
    """Make no queues for a ProcessPoolExecutor that this worker may never use.

    Those of spawn and forkserver have five named semaphores, which a worker that is
    killed leaves in /dev/shm. `map` and event loops submit, too.
    """
    lock = threading.Lock()

    def submit(*arguments: Any, **named: Any) -> Any:
        with lock:
            if vars(pool).get("submit") is submit:
                renew(pool)
                del pool.submit
        return pool.submit(*arguments, **named)

    pool.submit = submit


def renew(executor: Any) -> None:
    """Make one as new, with no thread and no work; takes none of its locks."""
    if issubclass(type(executor), _thread_pools()):
        executor._work_queue = _empty_queue(executor._work_queue)
        executor._idle_semaphore = threading.Semaphore(0)
        executor._shutdown_lock = threading.Lock()
        executor._threads = set()
        return
    options = {
        name: getattr(executor, f"_{name}")
        for name in ("mp_context", "initializer", "initargs", "max_tasks_per_child")
        if hasattr(executor, f"_{name}")
    }
    (base,) = _process_pools()
    base.__init__(executor, executor._max_workers, **options)  # type: ignore[misc]


def forget_fork_server() -> None:
    """In a worker: let multiprocessing start a fork server of its own.

    The master's is no child of ours, and waiting for it raises. Process pools use one
    unless told otherwise from 3.14 on.
    """
    module = sys.modules.get("multiprocessing.forkserver")
    server = getattr(module, "_forkserver", None)
    if server is None or server._forkserver_pid is None:
        return
    os.close(server._forkserver_alive_fd)  # it lives while somebody has this open
    kept = server._inherited_fds, server._preload_modules
    server.__init__()
    server._inherited_fds, server._preload_modules = kept


def forget_dead_threads() -> None:
    """In a worker: what concurrent.futures joins at exit lives in the master."""
    threads = sys.modules.get("concurrent.futures.thread")
    if threads is not None:
        threads._threads_queues.clear()
        # uWSGI forks without Python's own at-fork callbacks.
        threads._global_shutdown_lock._at_fork_reinit()
    processes = sys.modules.get("concurrent.futures.process")
    if processes is not None:
        processes._threads_wakeups.clear()
