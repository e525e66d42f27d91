"""System calls that a sandbox refuses, from the start on: the server serves, and says
what does not act."""

from __future__ import annotations

import platform
import signal
import sys

import pytest
from conftest import PROGRAMS, QUICK, Servers, full
from harness.load import Load, is_sum
from harness.processes import wait_until
from harness.under_load import GROWING, LEAKING

from cowpreload.board import open_board

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the filter has the numbers of x86-64"
)
CALLS = "memfd_create,eventfd2,timerfd_create,process_vm_readv,close_range,madvise"
HOSTS = ["uwsgi", *full("sync")]  # asgi's loop needs an eventfd itself


def refusing(error: str, calls: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / "refusing.py"), error, calls]


WITHOUT = {
    "ENOSYS": CALLS,
    "EPERM": CALLS,
    # Faults are what says when to read: without them, a limit acted after 30 s.
    "getrusage": "getrusage",
    # The signal by which a worker is told to go did not come.
    "tgkill": "tgkill",
}


@pytest.mark.parametrize("what", ["ENOSYS", *full("EPERM", "getrusage", "tgkill")])
@pytest.mark.parametrize("host", HOSTS)
def test_limits_act_without_the_calls_that_a_sandbox_refuses(
    servers: Servers, host: str, what: str
) -> None:
    launcher = refusing("ENOSYS" if what == "ENOSYS" else "EPERM", WITHOUT[what])
    server = servers.on(host, {**QUICK, **LEAKING}, workers=2, launcher=launcher)
    server.wait_serving(workers=2)
    assert server.log.count("cow: no memfd (") == ("memfd" in WITHOUT[what])
    load = Load(server.port, GROWING, check=is_sum, again=True).start()
    wait_until(lambda: server.log.count(" recycled ") > 10, 60, "ten recyclings")
    assert load.stop().errors == []


@pytest.mark.parametrize("host", ["uwsgi", *full("sync")])
def test_a_worker_without_a_thread_serves_on_without_limits(
    servers: Servers, host: str
) -> None:
    """clone() for a thread is refused: RLIMIT_NPROC, a control group's pids, a filter.

    On uWSGI a stop took a minute, now and then: such a worker was not told again.
    """
    launcher = refusing("EAGAIN", "thread")
    server = servers.on(host, {**QUICK, **LEAKING}, workers=2, launcher=launcher)
    server.wait_serving(workers=2)
    load = Load(server.port, GROWING, check=is_sum, seconds=1, again=True).start()
    assert load.finish().errors == []
    assert server.log.count("(the system gave no thread): serving on without") == 2
    assert " recycled " not in server.log
    board = open_board(server.pid)
    wanted = "ready" if host == "uwsgi" else "booting"
    assert {each.state for each in board} == {wanted}
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
