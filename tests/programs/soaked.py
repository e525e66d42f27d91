"""What `make soak` serves, by Flask (`application`) and by FastAPI (`asgi`).

Each answer is JSON: the number that the request had (header X-Soak), the pid, and a sum
that the client can tell beforehand. Environment: SOAK_BEGUN, a file to which a worker
appends "NUMBER PID" when it begins a request, so that a request that is lost names
whoever had it. Pages: `/page/N/` reads the inherited heap; `/kind/N/` makes 1 MB of
heap for each N, once a process, which a warm up saves; by query, so that no warm up
learns them: `/slow?n=MILLISECONDS`, `/leak?n=KB`, `/peak?n=MB` (given back at once),
`/runaway?n=MB`, in small steps, as a request that never ends its list.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

HEAP = [{"number": i, "name": f"name {i}"} for i in range(40_000)]
MADE: dict[int, list[object]] = {}
GROWN: list[bytearray] = []
BEGUN: dict[int, int] = {}
STEP = 8


def begin(number: str | None) -> None:
    """Note who has this request; the file is each process's own."""
    file = os.environ.get("SOAK_BEGUN")
    if not number or not file:
        return
    pid = os.getpid()
    if pid not in BEGUN:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        BEGUN[pid] = os.open(file, flags, 0o600)
    os.write(BEGUN[pid], f"{number} {pid}\n".encode())


def page(number: int) -> int:
    records = HEAP[number * 100 : number * 100 + 100]
    return sum(each["number"] for each in records if each["name"])  # type: ignore[misc]


def kind(number: int) -> int:
    if number not in MADE:
        MADE[number] = [{"number": i, "text": f"{number} {i}"} for i in range(3000)]
    return sum(map(len, MADE[number])) + number  # type: ignore[arg-type]


def leak(number: int) -> int:
    GROWN.append(bytearray(b"x") * (number << 10))
    return number


def peak(number: int) -> int:
    return len(bytearray(b"x") * (number << 20)) >> 20


def runaway(number: int) -> int:
    for _ in range(0, number, STEP):
        GROWN.append(bytearray(b"x") * (STEP << 20))
        time.sleep(0.05)
    return number


def slow(number: int) -> int:
    time.sleep(number / 1000)
    return number


PATHS = {"page": page, "kind": kind}
QUERIES = {"slow": slow, "leak": leak, "peak": peak, "runaway": runaway}


def answer(number: str | None, total: int) -> str:
    return json.dumps({"number": number, "pid": os.getpid(), "sum": total})


def _flask() -> Any:
    import flask

    made = flask.Flask(__name__)

    def given() -> str | None:
        found: str | None = flask.request.headers.get("X-Soak")
        return found

    def add(name: str, make: Any, rule: str) -> None:
        def view(number: int | None = None) -> Any:
            begin(given())
            if number is None:
                number = int(flask.request.args.get("n", 0))
            text = answer(given(), make(number))
            return flask.Response(text, content_type="application/json")

        made.add_url_rule(rule, name, view)

    for name, make in PATHS.items():
        add(name, make, f"/{name}/<int:number>/")
    for name, make in QUERIES.items():
        add(name, make, f"/{name}")
    add("home", page, "/")
    return made


def _fastapi() -> Any:
    import asyncio

    import fastapi

    api = fastapi.FastAPI(openapi_url=None)

    async def reply(request: Any, name: str, number: int) -> Any:
        known = request.headers.get("X-Soak")
        begin(known)
        if name == "slow":  # others are served meanwhile
            await asyncio.sleep(number / 1000)
            total = number
        else:
            total = {**PATHS, **QUERIES, "home": page}[name](number)
        return fastapi.Response(answer(known, total), media_type="application/json")

    def add(name: str, by_path: bool) -> None:
        async def view(request):  # type: ignore[no-untyped-def]
            given = request.path_params if by_path else request.query_params
            return await reply(request, name, int(given.get("n", 0)))

        view.__annotations__ = {"request": fastapi.Request}
        rule = {"home": "/"}.get(name, f"/{name}/{{n}}/" if by_path else f"/{name}")
        api.add_api_route(rule, view)

    for name in PATHS:
        add(name, True)
    for name in [*QUERIES, "home"]:
        add(name, False)
    return api


def __getattr__(name: str) -> Any:
    if name != "asgi":
        raise AttributeError(name)
    return globals().setdefault(name, _fastapi())


application = _flask()  # uWSGI looks for it without __getattr__
