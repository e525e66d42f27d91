"""A pool whose two processes read all of a catalogue; prints what each has of its own.

    process_pool.py fork|forkserver plain|gc|cow|broken

Prints a list of pairs: private bytes before and after.
"""

import gc
import json
import multiprocessing
import re
import sys
from pathlib import Path

CHILDREN = 2
PRELOADED = {
    "plain": ["process_catalogue"],
    "gc": ["process_catalogue", "process_freeze"],
    "cow": ["process_catalogue", "cowpreload.forkserver"],
    "broken": ["process_breaks", "cowpreload.forkserver"],
}
meeting = None


def private() -> int:
    text = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * sum(map(int, re.findall(r"^Private_Dirty: +(\d+)", text, re.M)))


def begin(barrier) -> None:
    global meeting
    meeting = barrier


def read(_: int) -> tuple[int, int]:
    from process_catalogue import CATALOGUE

    meeting.wait(60)  # so that each process has one
    before = private()
    assert sum(len(each["name"] + each["tags"][0]) for each in CATALOGUE)
    return before, private()


def main(method: str, mode: str) -> None:
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(PRELOADED[mode])
    else:
        import process_catalogue  # noqa: F401

        if mode == "gc":
            gc.collect()
            gc.freeze()
        elif mode == "cow":
            import cowpreload

            cowpreload.freeze()
    barrier = context.Barrier(CHILDREN)
    with context.Pool(CHILDREN, begin, (barrier,)) as pool:
        print(json.dumps(pool.map(read, range(CHILDREN), chunksize=1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
