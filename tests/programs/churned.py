"""The worst case for a sealed heap: many sizes, taken and freed again, in threads.

Argument: on (sealed) or off. Prints what a worker copied or took, in bytes.
"""

from __future__ import annotations

import os
import random
import sys
import threading

import cowpreload
from cowpreload import _core

THREADS, ROUNDS, BLOCKS = 3, 60, 400
kept: dict[int, list[bytes]] = {}


def churn(number: int, rounds: int) -> None:
    """Keep BLOCKS blocks of 16 bytes to 40 kB; each round drops a random half."""
    chance = random.Random(number)
    mine = kept.setdefault(number, [])
    for _ in range(rounds):
        chance.shuffle(mine)
        del mine[len(mine) // 2 :]
        while len(mine) < BLOCKS:
            mine.append(bytes(int(16 * 2500 ** chance.random())))


def in_threads(first: int, rounds: int) -> None:
    threads = [
        threading.Thread(target=churn, args=(first + number, rounds))
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


churn(0, ROUNDS)
in_threads(1, ROUNDS)
for blocks in kept.values():
    del blocks[::2]
cowpreload.freeze(seal=sys.argv[1])
child = os.fork()
if child == 0:
    before = _core.take_reading().private
    churn(100, ROUNDS)
    in_threads(101, ROUNDS)
    print(_core.take_reading().private - before, flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
os._exit(status)
