"""Warm up an ASGI application, with its lifespan, in a loop that ends with it.

Takes the callable, candidates, and the environ of a WSGI request for the host and the
headers of each; hands each answer to a function. Must leave no event loop and no thread
behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from cowpreload.candidates import Candidate
from cowpreload.deadline import Bounds, named
from cowpreload.errors import WarmupError, is_interrupt
from cowpreload.loops import settle

Scope = MutableMapping[str, Any]
_ENDING_SECONDS = 1.0
# What the loop has, in seconds, to cancel an overdue request before SIGALRM ends it:
# only a cancelled coroutine shows where it waited.
_CANCEL_SECONDS = 1.0


def _scope(path: str, environ: Mapping[str, str], state: dict[str, Any]) -> Scope:
    plain, _, query = path.partition("?")
    raw = plain.encode("latin-1", "replace")
    headers = [
        (
            name.removeprefix("HTTP_").replace("_", "-").lower().encode(),
            value.encode("latin-1", "replace"),
        )
        for name, value in environ.items()
        if name.startswith(("HTTP_", "CONTENT_"))
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": environ.get("wsgi.url_scheme", "http"),
        "path": unquote_to_bytes(plain).decode("utf-8", "replace"),
        "raw_path": raw,
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": (environ["HTTP_HOST"].partition(":")[0], 80),
        "state": state.copy(),
        "cowpreload.warmup": True,
    }


async def _request(app: Callable[..., Any], scope: Scope) -> int:
    status = 0
    done = asyncio.Event()
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = int(message["status"])
        elif message["type"] == "http.response.body" and not message.get("more_body"):
            done.set()

    await app(scope, receive, send)
    return status


@contextlib.contextmanager
def _over(bounds: Bounds, what: str) -> Iterator[None]:
    """Cancel the current task when the time is over.

    Raises:
        WarmupError: it is.
    """
    task = asyncio.current_task()
    assert task is not None
    with bounds.over(what, _CANCEL_SECONDS) as deadline:
        if deadline is None:
            yield
            return

        def give_up() -> None:
            deadline.expire()
            task.cancel()

        timer = asyncio.get_running_loop().call_later(deadline.seconds, give_up)
        try:
            yield
        finally:
            timer.cancel()


class _Lifespan:
    """The lifespan of an ASGI application around its warm up, where it has one.

    None is run for a server that runs none.
    """

    def __init__(self, app: Callable[..., Any], bounds: Bounds, runs: bool) -> None:
        self._runs = runs
        self.state: dict[str, Any] = {}
        self._app = app
        self._bounds = bounds
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outbox: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._task: asyncio.Task[Any] | None = None

    async def _exchange(self, event: str) -> None:
        """Send one event; return at its answer, or when the application is through."""
        assert self._task is not None
        await self._inbox.put({"type": f"lifespan.{event}"})
        answer = asyncio.ensure_future(self._outbox.get())
        with _over(self._bounds, f"lifespan {event}"):
            await asyncio.wait(
                {answer, self._task}, return_when=asyncio.FIRST_COMPLETED
            )
        if not answer.done():
            answer.cancel()
            return
        message = answer.result()
        if message["type"] == f"lifespan.{event}.failed":
            raise WarmupError(f"lifespan {event} failed: {message.get('message', '')}")

    async def __aenter__(self) -> _Lifespan:
        if not self._runs:
            return self
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self.state}
        self._task = asyncio.ensure_future(
            self._app(scope, self._inbox.get, self._outbox.put)
        )
        await self._exchange("startup")
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._task is None:
            return
        if not self._task.done():
            if exc[0] is None:  # else the process is about to end
                await self._exchange("shutdown")
            self._task.cancel()  # it may wait for messages for ever
        # An application without lifespan raises here; servers ignore that too.
        await asyncio.gather(self._task, return_exceptions=True)


async def _run(
    app: Callable[..., Any],
    candidates: Iterable[Candidate],
    environ: Callable[[Candidate], Mapping[str, str]],
    bounds: Bounds,
    answered: Callable[[Candidate, int, BaseException | None], bool],
    lifespan_runs: bool,
    end: contextlib.ExitStack,
) -> None:
    async with _Lifespan(app, bounds, lifespan_runs) as lifespan:
        for each in candidates:
            request = named(_request, each.frame)
            scope = _scope(each.path, environ(each), lifespan.state)
            status, fault = 0, None
            try:
                with _over(bounds, f"warmup={each.logged}"):
                    status = await request(app, scope)
            except BaseException as error:
                if is_interrupt(error):
                    raise
                fault = error
            if not answered(each, status, fault):
                break
    # asyncio waits for tasks and threads that a page left behind.
    end.enter_context(bounds.over("warmup: the end of the event loop"))
    await settle()


def _wait_for_ending(before: list[threading.Thread]) -> None:
    """Let threads that the run started end; those that stay are the audit's.

    asgiref 3.13 joins its executor from a thread that is told of the end of its work
    a moment before its own.
    """
    until = time.monotonic() + _ENDING_SECONDS
    for thread in threading.enumerate():
        if thread not in before:
            thread.join(max(0.0, until - time.monotonic()))


def run_asgi(
    app: Callable[..., Any],
    candidates: Iterable[Candidate],
    environ: Callable[[Candidate], Mapping[str, str]],
    bounds: Bounds,
    answered: Callable[[Candidate, int, BaseException | None], bool],
    lifespan: bool = True,
) -> None:
    """Request them in one loop, until `answered` says no.

    Raises:
        WarmupError: the lifespan failed, or the end of the loop took too long; and
            whatever `answered` raises.
    """
    before = threading.enumerate()
    with contextlib.ExitStack() as end:
        # asyncio.run closes the loop and its executor's threads: none crosses.
        asyncio.run(_run(app, candidates, environ, bounds, answered, lifespan, end))
    _wait_for_ending(before)
