"""What the kernel says of memory fails now and then, or is not whole.

A library between the server and the system (programs/faulty.c) has one call in two
fail, in master and workers, or the readings cut.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from conftest import QUICK, Servers, full
from fault_table import Faults
from harness.faulty import PAGEMAP, ROLLUP, SMAPS, STAT, STATM, VMSTAT, Faulty
from harness.processes import wait_until
from harness.under_load import LEAKING

# Two digits before the end of its private memory: a hundredth of it.
IN_A_NUMBER = Path("/proc/self/smaps_rollup").read_text().find("Private_Dirty:") + 22
EVERY = (ROLLUP, SMAPS, STATM, STAT, PAGEMAP, VMSTAT)


def failing(how: str, error: int, *files: int) -> Callable[[Faulty], None]:
    return lambda faulty: faulty.fail(how, error, *files, one_in=2)


def cut(length: int, *files: int) -> Callable[[Faulty], None]:
    return lambda faulty: faulty.cut(length, *files, one_in=2)


WAYS: dict[str, Callable[[Faulty], None]] = {
    "ESRCH": failing("read", errno.ESRCH, ROLLUP),
    "ENOENT": failing("open", errno.ENOENT, ROLLUP),
    "EACCES": failing("open", errno.EACCES, *EVERY),
    "EINTR": failing("read", errno.EINTR, *EVERY),
    "EMFILE": failing("open", errno.EMFILE, *EVERY),
    "empty": cut(0, ROLLUP, SMAPS),
    "empty statm": cut(0, STATM),
    "cut in a number": cut(IN_A_NUMBER, ROLLUP),
    "cut statm": cut(9, STATM),
    "no field": lambda faulty: faulty.without(one_in=2),
}


def _more(faulty: Faulty, done: int) -> bool:
    return faulty.done > done


@pytest.mark.parametrize("host", ["sync", *full("uwsgi")])
def test_limits_act_though_readings_fail_now_and_then(
    servers: Servers, faults: Faults, tmp_path: Path, host: str
) -> None:
    """All kinds, one after the other: a worker is recycled for what it has, neither
    sooner nor never."""
    faulty = Faulty(tmp_path)
    server = servers.on(
        host, {**QUICK, **LEAKING}, workers=4, environ=faulty.environ
    ).wait_serving(workers=4)
    ways = WAYS if faults.full else {"cut in a number": WAYS["cut in a number"]}
    with faults.under_load("readings that fail", server, host, workers=4) as under:
        under.settle_in()
        for name, begin in ways.items():
            done = faulty.done
            begin(faulty)
            under.recycle(faults.pick(8, 16))
            wait_until(partial(_more, faulty, done), 30, name)
            faulty.whole()
    assert " killed " not in server.log
    for line in server.log.splitlines():
        if " recycled " in line:
            assert int(line.partition("private=")[2].partition("MiB")[0]) >= 20, line
