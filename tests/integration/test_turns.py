"""uWSGI's master calls Python at its turns, and once at its end."""

from __future__ import annotations

import os
import signal

import pytest
from conftest import QUICK, Servers, needs_uwsgi
from harness.processes import alive, wait_until

pytestmark = needs_uwsgi


@pytest.mark.each_python
@pytest.mark.parametrize("threads", ["false", "true"])
def test_what_the_master_does_at_its_turns_ends_no_server(
    servers: Servers, threads: str
) -> None:
    """uWSGI's master holds Python's lock between its rounds, or not."""
    ini = {**QUICK, "enable-threads": threads, "processes": "2"}
    server = servers.uwsgi(ini, app="turns").wait_serving()
    turn, left, end = (f"{what} in {server.pid}" for what in ("turn", "leaves", "end"))
    wait_until(lambda: server.log.count(turn) >= 2, 30, "turns")
    assert server.log.count(left) == 1
    assert "cow: in the master: leave() is not called again" in server.log
    assert end not in server.log
    server.signal(signal.SIGHUP)
    server.wait_log("gracefully (RE)spawned")
    before = server.log.count(turn)
    wait_until(lambda: server.log.count(turn) > before, 30, "turns after the reload")
    assert (server.log.count(left), server.log.count(end)) == (3, 1)
    server.wait_serving()
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert (server.log.count(left), server.log.count(end)) == (4, 2)
    # Of the master alone, whatever its workers have inherited.
    assert server.log.count("turn in ") == server.log.count(turn)


def test_a_turn_that_is_not_there_is_said_once(servers: Servers) -> None:
    """A plugin may be older or newer than the package."""
    ini = {**QUICK, "processes": "1", "forkbomb-delay": "0"}
    server = servers.uwsgi(ini, app="turns", environ={"MISSING": "1"}).wait_serving()
    server.wait_log("AttributeError")
    victim = server.workers()[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not alive(victim), 30, "its end")
    server.wait_serving()
    assert server.log.count("AttributeError") == 1
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
