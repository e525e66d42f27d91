"""Random values: none comes twice, in no two workers and no two generations of a slot.

Sources are made at import, and the warm up has drawn of them.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter

import pytest
from conftest import QUICK, Servers, full
from harness.processes import alive, wait_until
from harness.server import Server

# Workers get a copy of the state: of what was given a seed, because it was asked for;
# nothing tells whether a random.Random was.
COPIED = {"seeded rng", "instance"}
OF_NUMPY = {"numpy", "numpy normal", "numpy rng", "numpy state"}


def repeated(server: Server) -> set[str]:
    """The sources of which any two of six workers, in two slots, drew the same."""
    drawn: Counter[tuple[str, object]] = Counter()
    seen: set[int] = set()

    def new() -> int:
        found = json.loads(server.get("/")[1])
        if found["pid"] in seen:
            return 0
        seen.add(found["pid"])
        for name, value in found["drawn"].items():
            drawn[name, value] += 1
        return int(found["pid"])

    for _ in range(3):
        pids = [wait_until(new, 60, "a worker that has not answered") for _ in range(2)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda pids=pids: not any(map(alive, pids)), 30, "their end")
        server.wait_serving(workers=2)
    assert len(seen) == 6
    return {name for (name, _), times in drawn.items() if times > 1}


@pytest.mark.parametrize(
    "host", ["sync", *full("uwsgi", "threaded", "asgi", "gevent", "uwsgi-threaded")]
)
def test_no_random_value_comes_twice_in_workers_and_generations(
    servers: Servers, host: str
) -> None:
    pytest.importorskip("numpy")
    options = {**QUICK, "cow-warmup": "/"}
    server = servers.on(host, options, app="draws", environ={"COW": "1"})
    assert repeated(server.wait_serving(workers=2)) == COPIED


@pytest.mark.parametrize("host", full("gunicorn", "uwsgi"))
def test_without_us_workers_draw_the_same_numbers_of_numpys(
    servers: Servers, host: str
) -> None:
    """What docs/fork-safety.md says of --preload alone."""
    pytest.importorskip("numpy")
    if host == "uwsgi":
        ini = {"processes": "2", "forkbomb-delay": "0"}
        server = servers.uwsgi(ini, app="draws", plugin=False)
    else:
        server = servers.gunicorn("--preload", "--workers", "2", app="draws")
    assert repeated(server.wait_serving(workers=2)) == COPIED | OF_NUMPY | {"reseeded"}
