"""/probe/...: pages that misbehave on request, for tests and measurements.

Takes numbers from the query, gives JSON; a bad number gives status 400 and the rule
that it broke. Anyone who can reach these pages can take the machine's memory and its
workers' time: they must not be exposed, SHOP_PROBES=0 takes them away. They answer GET
although they change the worker, because a load generator should need nothing else.

MB here is 1024 * 1024 bytes. What a probe keeps, it keeps in the worker that answered.
"""

import functools
import mmap
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.http import HttpRequest, JsonResponse

try:
    from cowpreload import worker as cow_worker
except ImportError:  # a plain host, which the same site is measured on

    def cow_worker() -> None:
        """Say that this is no cow worker."""


MB = 1024 * 1024
MOST_MB = 1024
LONGEST_SECONDS = 120
LARGEST_SUM = 10_000_000

COW_FIELDS = ("slot", "generation", "requests", "private", "shared", "pss", "rss")

Number = TypeVar("Number", int, float)
Answer = dict[str, Any]

_grown: list[mmap.mmap] = []


class BadNumberError(ValueError):
    """A number of the query is missing, no number or out of bounds: args[0] says."""


def probe(
    view: Callable[[HttpRequest], Answer],
) -> Callable[[HttpRequest], JsonResponse]:
    """Make a page of `view`: its answer as JSON, a bad number as status 400."""

    @functools.wraps(view)
    def page(request: HttpRequest) -> JsonResponse:
        try:
            return JsonResponse(view(request))
        except BadNumberError as error:
            return JsonResponse({"error": error.args[0]}, status=400)

    return page


@probe
def grow(request: HttpRequest) -> Answer:
    """`?mb=N`: keep N more MB, 1 to 1024, of touched private memory alive."""
    _grow(_megabytes(request))
    return {"pid": os.getpid(), "kept_mb": _kept_mb()}


@probe
def release(request: HttpRequest) -> Answer:
    """Give everything that this worker grew by back to the system."""
    while _grown:
        _grown.pop().close()
    return {"pid": os.getpid(), "kept_mb": _kept_mb()}


@probe
def hang(request: HttpRequest) -> Answer:
    """`?seconds=S&mb=N`: grow by N MB, if given, and sleep for S seconds, up to 120.

    Growing comes first, so that a worker passes its limit while it answers nobody. The
    memory stays until /probe/release/.
    """
    seconds = _number(
        request,
        "seconds",
        float,
        lambda value: 0 < value <= LONGEST_SECONDS,
        f"a number above 0, at most {LONGEST_SECONDS}",
    )
    if "mb" in request.GET:
        _grow(_megabytes(request))
    time.sleep(seconds)
    return {"pid": os.getpid(), "seconds": seconds, "kept_mb": _kept_mb()}


@probe
def me(request: HttpRequest) -> Answer:
    """Say which worker answers; memory in bytes, null where this is no cow worker."""
    worker = cow_worker()
    return {
        "pid": os.getpid(),
        "thread": threading.current_thread().name,
        **{
            field: None if worker is None else getattr(worker, field)
            for field in COW_FIELDS
        },
    }


@probe
def sum_squares(request: HttpRequest) -> Answer:
    """`?n=N`: add the squares of 0 to N - 1 one by one, N up to ten million.

    A client checks the answer by the closed form, (N - 1) * N * (2 * N - 1) / 6.
    """
    n = _number(
        request,
        "n",
        int,
        lambda value: 0 <= value <= LARGEST_SUM,
        f"a whole number from 0 to {LARGEST_SUM}",
    )
    return {"pid": os.getpid(), "n": n, "sum": sum(i * i for i in range(n))}


def _grow(megabytes: int) -> None:
    """Map `megabytes` of private memory and write to every page of it.

    A mapping and not a bytes object: its size is exact, closing it gives it back at
    once, and no allocator can serve it from memory that the worker already had.
    """
    size = megabytes * MB
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for offset in range(0, size, mmap.PAGESIZE):
        block[offset] = 1
    _grown.append(block)


def _kept_mb() -> int:
    return sum(len(block) for block in _grown) // MB


def _megabytes(request: HttpRequest) -> int:
    return _number(
        request,
        "mb",
        int,
        lambda value: 1 <= value <= MOST_MB,
        f"a whole number from 1 to {MOST_MB}",
    )


def _number(
    request: HttpRequest,
    name: str,
    kind: Callable[[str], Number],
    allowed: Callable[[Number], bool],
    rule: str,
) -> Number:
    """Return the query's `name` as a `kind`, or raise BadNumberError with `rule`."""
    text = request.GET.get(name)
    try:
        value = kind(text or "")
    except ValueError:
        value = None
    if value is None or not allowed(value):
        raise BadNumberError(f"{name}={text!r}: must be {rule}")
    return value
