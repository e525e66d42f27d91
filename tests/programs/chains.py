"""Work on preloaded objects for long, each kind in a child of its own, frozen before.

Argument: on or off. Output: a line for each kind: its name and the bytes by which the
child's private memory has grown in 15,000 rounds after the first 5,000.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import functools
import heapq
import itertools
import logging
import os
import queue
import re
import sys
import threading
import weakref
from collections.abc import Callable, Generator

import cowpreload
from cowpreload import _core

FIRST, ROUNDS = 5_000, 15_000


class Node:
    """One of a queue that moves on: its head is always a node that was served."""

    __slots__ = ("following", "payload")

    def __init__(self) -> None:
        self.following: Node | None = None
        self.payload = b"x" * 10


class Mortal(Node):
    __slots__ = ()


cowpreload.keep_mortal(Mortal)


class Moving:
    def __init__(self, kind: type[Node]) -> None:
        self.kind = kind
        self.head = self.tail = kind()
        for _ in range(3):
            self.push()

    def push(self) -> None:
        self.tail.following = self.kind()
        self.tail = self.tail.following

    def __call__(self) -> None:
        self.push()
        assert self.head.following is not None
        self.head = self.head.following


class Sentinel(Moving):
    """The head stays and points on; nodes that were in it before the freeze do not."""

    def __call__(self) -> None:
        self.push()
        assert self.head.following is not None
        self.head.following = self.head.following.following


def replies() -> Generator[object, object, None]:
    got: object = None
    while True:
        got = yield [got]


def fresh() -> bytes:
    return bytes(40)


once, twice = itertools.tee(fresh() for _ in itertools.count())
next(once), next(twice)
numbers = itertools.count(1 << 60)
pairs = zip(numbers, itertools.repeat(None))
counted = enumerate(iter(fresh, None), 1 << 60)
cycled = itertools.cycle([fresh()])
grouped = itertools.groupby(itertools.count())
chained = itertools.chain.from_iterable([each] for each in numbers)
deque = collections.deque(range(100), maxlen=100)
ordered = collections.OrderedDict.fromkeys(range(100))
mapping: dict[object, object] = dict.fromkeys(range(100))
heap = list(range(100))
simple: queue.SimpleQueue[object] = queue.SimpleQueue()
lifo: queue.Queue[object] = queue.Queue()
variable: contextvars.ContextVar[object] = contextvars.ContextVar("variable")
context = contextvars.copy_context()
condition = threading.Condition()
local = threading.local()
logger = logging.getLogger("chains")
logger.addHandler(logging.NullHandler())
loop = asyncio.new_event_loop()
sent = replies()
next(sent)
followed = weakref.WeakValueDictionary[object, object]()
text = "a" * 100
growing = bytearray(b"x" * 100)
error = ValueError("preloaded")
pattern = re.compile("x+")


@functools.lru_cache(maxsize=64)
def cached(number: int) -> bytes:
    return bytes(number % 50)


for _ in range(100):
    cached(next(numbers))


def reordered() -> None:
    key = next(numbers)
    ordered[key] = fresh()
    ordered.move_to_end(key, last=False)
    ordered.popitem()


def replaced() -> None:
    mapping.popitem()
    mapping[next(numbers)] = fresh()


def raised() -> None:
    try:
        try:
            raise error
        except ValueError:
            raise KeyError(fresh()) from None
    except KeyError:
        error.__traceback__ = None


def waited() -> None:
    future = loop.create_future()
    loop.call_soon(future.set_result, fresh())
    loop.call_later(0, fresh)
    loop.run_until_complete(future)


def pushed(kind: object) -> Callable[[], None]:
    def work() -> None:
        kind.put(fresh())  # type: ignore[attr-defined]
        kind.get()  # type: ignore[attr-defined]

    return work


def in_context() -> None:
    context.run(variable.set, fresh())


class Thing:
    """Can be referred to weakly."""


def remembered() -> None:
    thing = Thing()
    followed[next(numbers)] = thing
    local.thing = thing


KINDS: dict[str, Callable[[], object]] = {
    "tee": lambda: (next(once), next(twice)),
    "moving head": Moving(Node),
    "moving head, kept mortal": Moving(Mortal),
    "sentinel": Sentinel(Node),
    "zip": lambda: next(pairs),
    "enumerate": lambda: next(counted),
    "cycle": lambda: next(cycled),
    "groupby": lambda: next(grouped),
    "chain": lambda: next(chained),
    "deque": lambda: deque.append(fresh()),
    "OrderedDict": reordered,
    "dict": replaced,
    "heapq": lambda: heapq.heapreplace(heap, next(numbers)),
    "SimpleQueue": pushed(simple),
    "Queue": pushed(lifo),
    "Condition": lambda: condition.acquire() and condition.release(),
    "lru_cache": lambda: cached(next(numbers)),
    "exception": raised,
    "generator": lambda: sent.send(fresh()),
    "asyncio": waited,
    "context": in_context,
    "weak references": remembered,
    "logging": lambda: logger.warning("%r", fresh()),
    "string": lambda: text + str(next(numbers)),
    "bytearray": lambda: (growing.extend(b"y"), growing.pop()),
    "pattern": lambda: pattern.sub(lambda found: "y", "axxb"),
}


def growth(work: Callable[[], object]) -> int:
    """Bytes, in a child."""
    out, into = os.pipe()
    if os.fork() == 0:
        for _ in range(FIRST):
            work()
        start = _core.take_reading().private
        for _ in range(ROUNDS):
            work()
        os.write(into, b"%d" % (_core.take_reading().private - start))
        os._exit(0)
    os.wait()
    return int(os.read(out, 30))


cowpreload.freeze("auto" if sys.argv[1] == "on" else "off")
for name, work in KINDS.items():
    print(f"{name}: {growth(work)}")
sys.stdout.flush()
os._exit(0)
