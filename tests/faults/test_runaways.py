"""Workers that allocate more than their control group may hold."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import QUICK, Servers, full, ready
from fault_table import Faults
from harness.processes import alive, descendants, wait_until
from harness.server import Server
from harness.under_load import LEAKING

GROUPS = Path("/sys/fs/cgroup/memory")
LIMIT_MIB = 400


@pytest.fixture(name="group")
def make_group(tmp_path: Path) -> Iterator[Path]:
    """A memory control group of LIMIT_MIB; version 1."""
    group = GROUPS / f"cow-test-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT_MIB << 20))
    except OSError as error:
        pytest.skip(f"no memory control group can be made here: {error}")
    with contextlib.suppress(OSError):  # where swap is not accounted
        (group / "memory.memsw.limit_in_bytes").write_text(str(LIMIT_MIB << 20))
    yield group
    # Whoever is left goes back, so that nothing keeps the group.
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            (GROUPS / "cgroup.procs").write_text(pid)
    wait_until(lambda: _removed(group), 20, "the control group to be empty")


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def confine(server: Server, group: Path) -> None:
    """Put a server into the group, with whoever it forks meanwhile."""
    for pid in (server.pid, *descendants(server.pid)):
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))


def kernels_kills(group: Path) -> int:
    words = (group / "memory.oom_control").read_text().split()
    return int(words[words.index("oom_kill") + 1])


@pytest.mark.parametrize(
    ("host", "hard", "path"),
    [
        ("sync", "", f"/grow?mb={LIMIT_MIB + 50}"),
        *full(
            ("uwsgi", "", f"/grow?mb={LIMIT_MIB + 50}"),
            ("threaded", "", f"/grow?mb={LIMIT_MIB + 50}"),
            ("asgi", "", f"/grow?mb={LIMIT_MIB + 50}"),
            ("sync", "150M", f"/climb?mb={LIMIT_MIB + 50}&s=10"),
            ("uwsgi", "150M", f"/climb?mb={LIMIT_MIB + 50}&s=10"),
            ("threaded", "150M", f"/climb?mb={LIMIT_MIB + 50}&s=10"),
        ),
    ],
)
def test_a_runaway_costs_its_worker_and_no_other(
    servers: Servers, faults: Faults, group: Path, host: str, hard: str, path: str
) -> None:
    """The kernel kills it, or we do: where it climbs and has a hard limit, we do."""
    limit = {"cow-max-private-hard": hard} if hard else {}
    server = servers.on(host, {**QUICK, **LEAKING, **limit}, workers=3)
    ready(server, 3)
    confine(server, group)
    ours = 0
    with faults.under_load(
        f"runaway in a control group{', hard limit' if hard else ''}",
        server,
        host,
        workers=3,
        clients=3,
        # Else it grows by the group's limit while it waits for its turn to leave.
        pause=0.1 if host == "asgi" else 0.02,
    ) as under:
        under.settle_in()
        first, begun = kernels_kills(group), time.monotonic()
        for _ in range(faults.pick(1, 8)):
            before, killed = kernels_kills(group), server.log.count(" killed private=")
            since = time.monotonic()
            with contextlib.suppress(OSError):
                server.get(path, timeout=60)
            wait_until(
                lambda before=before, killed=killed: (
                    kernels_kills(group) > before
                    or server.log.count(" killed private=") > killed
                ),
                30,
                "a kill",
            )
            ours += server.log.count(" killed private=") - killed
            if host not in ("sync", "uwsgi"):  # the others that its threads had
                under.explain("the runaway's neighbours", under.clients, since)
        # While its victim dies, the kernel may take another.
        others = kernels_kills(group) - first - faults.pick(1, 8) + ours
        under.explain("the kernel's other victims", max(others, 0), begun)
        assert alive(server.pid)
    assert not hard or ours == faults.pick(1, 8), server.log
