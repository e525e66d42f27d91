"""What an ASGI warm up leaves behind works in the loop of a worker.

The worker's loop is a second one in the same process here.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from conftest import run

from cowpreload.closing import close_all
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up

Page = Callable[[], Awaitable[str]]
KEPT: list[object] = []


def app_of(page: Page) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body = (await page()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return app


def in_worker_after_warm_up(page: Page) -> str:
    """Warm `page` up as the master does, then ask for it in a loop of its own."""
    warm_up(app_of(page), Settings(warmup=("/",), warmup_repeat=2))
    assert close_all() == []

    async def twice() -> str:
        assert await page() == await page()
        return await page()

    return asyncio.run(asyncio.wait_for(twice(), 20))


async def three(work: Callable[[], Awaitable[Any]]) -> str:
    """Three at once: they have to wait for each other, which binds to the loop."""
    return str(len(await asyncio.gather(work(), work(), work())))


def lock() -> Page:
    held = asyncio.Lock()

    async def work() -> None:
        async with held:
            await asyncio.sleep(0.001)

    return lambda: three(work)


def semaphore() -> Page:
    held = asyncio.Semaphore(1)

    async def work() -> None:
        async with held:
            await asyncio.sleep(0.001)

    return lambda: three(work)


def queue() -> Page:
    items: asyncio.Queue[int] = asyncio.Queue(1)

    async def work() -> None:
        put = asyncio.ensure_future(items.put(1))
        await items.get()
        items.task_done()
        await put

    async def page() -> str:
        count = await three(work)
        await items.join()
        return count

    return page


def condition() -> Page:
    held = asyncio.Condition()

    async def wait() -> None:
        async with held:
            await held.wait()

    async def page() -> str:
        waiters = [asyncio.ensure_future(wait()) for _ in range(3)]
        await asyncio.sleep(0.001)
        async with held:
            held.notify_all()
        await asyncio.gather(*waiters)
        return "3"

    return page


def event() -> Page:
    happened = asyncio.Event()

    async def page() -> str:
        happened.clear()
        asyncio.get_running_loop().call_later(0.001, happened.set)
        return await three(happened.wait)

    return page


def barrier() -> Page:
    held = asyncio.Barrier(3)  # type: ignore[attr-defined]
    return lambda: three(held.wait)


def left_waiting() -> Page:
    """Tasks that still wait when the warm up ends: for an item, a lock, an event."""
    items: asyncio.Queue[int] = asyncio.Queue()
    held, happened = asyncio.Lock(), asyncio.Event()
    kept = []

    async def hold() -> None:
        async with held:
            await asyncio.sleep(600)

    async def page() -> str:
        if kept and all(task.done() for task in kept):
            kept.clear()
        if not kept:
            assert not held.locked()
            kept.extend(
                asyncio.ensure_future(work)
                for work in (hold(), items.get(), happened.wait(), held.acquire())
            )
            await asyncio.sleep(0.001)
        return str(len(kept))

    return page


def stubborn() -> Page:
    """Tasks that still work when they are cancelled."""
    never = asyncio.Event()

    async def stay() -> None:
        try:
            await never.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.001)

    async def page() -> str:
        held = [asyncio.ensure_future(stay()) for _ in range(3)]
        await asyncio.sleep(0.001)
        return str(len(held))

    return page


def generator() -> Page:
    """An asynchronous generator that nobody reads to its end."""
    opened: list[AsyncIterator[int]] = []

    async def numbers() -> AsyncIterator[int]:
        for number in range(10):
            yield number
            await asyncio.sleep(0)

    async def page() -> str:
        opened.append(numbers())
        return str(3 + await opened[-1].__anext__())

    return page


def anyio_primitives() -> Page:
    anyio = pytest.importorskip("anyio")
    held, limiter = anyio.Lock(), anyio.CapacityLimiter(1)
    happened = anyio.Event()
    send, receive = anyio.create_memory_object_stream(1)
    KEPT.extend((send, receive))  # anyio warns of one that is freed open

    async def work() -> None:
        async with held:
            await anyio.sleep(0.001)
        async with limiter:
            await anyio.sleep(0.001)
        await anyio.to_thread.run_sync(lambda: None)

    async def page() -> str:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(work)
            group.start_soon(send.send, 1)
            assert await receive.receive() == 1
        happened.set()
        await happened.wait()
        return "3"

    return page


PRIMITIVES = [lock, semaphore, queue, condition, event, generator, stubborn]
PRIMITIVES += [barrier] if hasattr(asyncio, "Barrier") else []


@pytest.mark.parametrize("make", [*PRIMITIVES, anyio_primitives])
def test_primitives_of_a_warm_up_work_in_another_loop(make: Callable[[], Page]) -> None:
    assert in_worker_after_warm_up(make()) == "3"


def test_tasks_left_waiting_leave_nothing_bound() -> None:
    assert in_worker_after_warm_up(left_waiting()) == "4"


def test_an_odd_primitive_leaves_no_other_one_bound() -> None:
    class Odd(asyncio.Lock):
        @property
        def _loop(self) -> None:  # type: ignore[override]
            raise RuntimeError("not for you")

    odd = [Odd()]
    page = lock()
    odd.append(Odd())
    warm_up(app_of(page), Settings(warmup=("/",), warmup_repeat=2))
    (fault,) = close_all()
    del odd
    assert "RuntimeError: not for you" in fault
    assert asyncio.run(asyncio.wait_for(page(), 20)) == "3"


def test_context_variables_of_a_warm_up_do_not_reach_workers() -> None:
    user = contextvars.ContextVar("user", default="nobody")

    async def page() -> str:
        before = user.get()
        user.set("warm up")
        return before

    warm_up(app_of(page), Settings(warmup=("/",), warmup_repeat=1))
    assert user.get() == "nobody"


ASGIREF = """
import asyncio
from asgiref.sync import async_to_sync
from cowpreload.closing import close_all
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
HELD = asyncio.Lock()
async def work():
    async with HELD:
        await asyncio.sleep(0.001)
async def page():
    await asyncio.gather(work(), work())
def application(environ, start_response):
    async_to_sync(page)()
    start_response("200 OK", [])
    return [b"ok"]
warm_up(application, Settings(warmup=("/",), warmup_repeat=1))
assert close_all() == []
print(application({}, lambda *_: None))
"""


def test_async_to_sync_in_a_warm_up_binds_no_worker() -> None:
    """Which makes a loop for each call, as Django does with async views under WSGI."""
    done = run("-c", ASGIREF)
    assert done.stdout == "[b'ok']\n", done.stderr


CLIENT = """
import asyncio, http.server, threading
import httpx
from cowpreload.closing import close_all
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *arguments):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
CLIENT = httpx.AsyncClient()

async def page():
    answers = await asyncio.gather(*(CLIENT.get(url) for _ in range(3)))
    return "".join(each.text for each in answers)

async def app(scope, receive, send):
    assert scope["type"] == "http"
    await page()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})

warm_up(app, Settings(warmup=("/",), warmup_repeat=2))
assert close_all() == []
async def worker():
    print(await page())
    await CLIENT.aclose()
asyncio.run(worker())
"""


def test_a_client_of_httpx_opens_its_connections_anew() -> None:
    """It is kept in a module and its connections belong to the closed loop."""
    pytest.importorskip("httpx")
    done = run("-W", "error", "-c", CLIENT)
    assert (done.stdout, done.stderr) == ("okokok\n", "")


TRIO = """
import trio
from cowpreload.closing import close_all
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
HELD, LIMITER = trio.Lock(), trio.CapacityLimiter(1)
async def work():
    async with HELD, LIMITER:
        await trio.sleep(0.001)
    await trio.to_thread.run_sync(int)
async def page():
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(work)
def application(environ, start_response):
    trio.run(page)
    start_response("200 OK", [])
    return [b"ok"]
warm_up(application, Settings(warmup=("/",), warmup_repeat=1))
assert close_all() == []
print(application({}, lambda *_: None), flush=True)
import os
pid = os.fork()
if not pid:
    print(application({}, lambda *_: None), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""


def test_trio_is_not_bound_to_a_run() -> None:
    pytest.importorskip("trio")
    done = run("-W", "ignore::DeprecationWarning", "-c", TRIO)
    assert done.stdout == "[b'ok']\n[b'ok']\n", done.stderr
