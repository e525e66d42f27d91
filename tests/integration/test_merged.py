"""`cow-merge = kernel` on real servers: what is offered, and what is merged of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PYPY, Servers, deep
from harness.processes import wait_until

from cowpreload import _core
from cowpreload.merging import KSM

pytestmark = [
    pytest.mark.each_python,
    pytest.mark.skipif(
        not (KSM / "run").exists(), reason="this kernel merges no memory (no KSM)"
    ),
]


def mergeable(pid: int) -> tuple[int, int]:
    """Bytes of the anonymous memory of a process that the kernel may merge, and all."""
    marked = private = 0
    for block in Path(f"/proc/{pid}/smaps").read_text().split("\nRss:")[1:]:
        size = int(block.partition("\nAnonymous:")[2].split()[0]) * 1024
        flags = block.partition("\nVmFlags:")[2].partition("\n")[0].split()
        private += size
        marked += size if "mg" in flags else 0
    return marked, private


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_workers_offer_what_they_inherit(servers: Servers, host: str) -> None:
    server = servers.on(host, {"cow-merge": "kernel"}, workers=1).wait_serving()
    server.wait_log("cow: merge=kernel offered=")
    (worker,) = server.workers()
    marked, private = mergeable(worker)
    assert marked > private // 2


@contextlib.contextmanager
def merging_machine() -> Iterator[None]:
    """KSM of this machine switched on, and put back."""
    wanted = {"pages_to_scan": "5000", "sleep_millisecs": "10", "run": "1"}
    before = {name: (KSM / name).read_text() for name in wanted}
    try:
        for name, value in wanted.items():
            (KSM / name).write_text(value)
        yield
    finally:
        for name, value in before.items():
            (KSM / name).write_text(value)


@pytest.mark.skipif(
    not os.access(KSM / "run", os.W_OK), reason="only root switches KSM on"
)
@pytest.mark.parametrize("host", deep("sync", "uwsgi"))
def test_copies_that_are_equal_again_are_merged(servers: Servers, host: str) -> None:
    """Mortal, each worker copies what it reads, and the counts are as they were."""
    options = {"cow-merge": "kernel", "cow-immortal": "off"}
    with merging_machine():
        server = servers.on(host, options, workers=2, environ={"HEAP_MB": "40"})
        server.wait_serving()
        for _ in range(40):
            assert server.get("/read")[0] == 200
        copied = max(map(private, server.workers()))
        if PYPY:
            return  # its marks are written by collections, which nobody asked for
        wait_until(
            lambda: max(map(private, server.workers())) < copied / 2, 60, "merging"
        )
        assert min(map(merged, server.workers())) > 0
        assert server.get("/read")[0] == 200


def private(pid: int) -> int:
    """Bytes of private memory."""
    return _core.take_reading(pid).private


def merged(pid: int) -> int:
    """Pages of a process that are merged now."""
    return int(Path(f"/proc/{pid}/ksm_merging_pages").read_text())
