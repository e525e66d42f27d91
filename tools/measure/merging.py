"""What the kernel's merging (KSM) gives back: `cow-merge=kernel` against `off`.

The example site on gunicorn, as many workers as are asked for, requests that read the
whole catalogue; then an idle time, in which ksmd works; then the same requests again.
Gives, in MB, private memory of the largest worker and total PSS after each, the seconds
until nothing more was merged, ksmd's processor time for it, and the workers' processor
time a request. Needs root: it switches the machine's KSM on, and back to what it was.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from cowpreload import _core
from cowpreload.bench.client import Load
from cowpreload.bench.server import Server
from cowpreload.bench.site import browsing
from cowpreload.merging import KSM
from measure import common
from measure.common import Figures, Site, mb

# What the kernel starts with would take minutes: 100 pages each 20 ms.
SCAN = {"pages_to_scan": "5000", "sleep_millisecs": "20", "run": "1"}
SETTLED_MB, SETTLED_SECONDS, MOST_SECONDS = 0.5, 4.0, 60.0


@contextlib.contextmanager
def _merging_machine() -> Iterator[None]:
    before = {name: (KSM / name).read_text() for name in SCAN}
    try:
        for name, value in SCAN.items():
            (KSM / name).write_text(value)
        yield
    finally:
        for name, value in before.items():
            (KSM / name).write_text(value)


def _ksmd_seconds() -> float:
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text() == "ksmd\n":
                fields = (path.parent / "stat").read_text().rpartition(")")[2].split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _cpu_seconds(pids: list[int]) -> float:
    texts = [Path(f"/proc/{pid}/schedstat").read_text() for pid in pids]
    return sum(int(text.split()[0]) for text in texts) / 1e9


def _memory(server: Server) -> Figures:
    workers = [_core.take_reading(pid) for pid in server.workers()]
    master = _core.take_reading(server.pid)
    return {
        "private_mb": mb(max(each.private for each in workers)),
        "total_pss_mb": mb(sum(each.pss for each in [*workers, master])),
    }


def _settle(server: Server) -> float:
    """Wait until memory falls no more; the seconds until then."""
    began = last = time.monotonic()
    least = _memory(server)["total_pss_mb"]
    while time.monotonic() - last < SETTLED_SECONDS:
        if time.monotonic() - began > MOST_SECONDS:
            break
        time.sleep(0.5)
        now = _memory(server)["total_pss_mb"]
        if now < least - SETTLED_MB:
            least, last = now, time.monotonic()
    return last - began


def _measure(site: Site, merge: str, workers: int, requests: int) -> Figures:
    with common.gunicorn(site, workers, cow_merge=merge) as server:
        server.wait_serving(workers=workers)
        figures: Figures = {}
        for part in ("first", "again"):
            pids = server.workers()
            before = _cpu_seconds(pids)
            paths = browsing(server, 400)
            load = Load(server.port, paths, requests=requests, seconds=600)
            report = load.start().finish()
            assert not report.wrong + report.failed, report.errors[:3]
            cpu = (_cpu_seconds(pids) - before) / requests
            after, ksmd = _memory(server), _ksmd_seconds()
            seconds = _settle(server)
            figures[part] = {
                "busy": after,
                "idle": _memory(server),
                "cpu_ms_a_request": round(cpu * 1000, 3),
                "settled_seconds": round(seconds, 1),
                "ksmd_seconds": round(_ksmd_seconds() - ksmd, 2),
            }
            common.say(f"merging: merge={merge} {part} {figures[part]}")
    return figures


def main() -> None:
    """Measure and print."""
    parser: argparse.ArgumentParser = common.parser(__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--merge", nargs="*", default=["off", "kernel", "self"])
    arguments = parser.parse_args()
    if not os.access(KSM / "run", os.W_OK):
        sys.exit(f"{KSM / 'run'}: needs root, and a kernel with KSM")
    with common.example_site(arguments.site) as site, _merging_machine():
        figures = {
            merge: _measure(site, merge, arguments.workers, arguments.requests)
            for merge in arguments.merge
        }
    common.report("merging", {"workers": arguments.workers, "by_merge": figures})


if __name__ == "__main__":
    main()
