"""What `cowpreload why` costs the worker that it examines, and what it explains.

The example site, large, on gunicorn with one cow worker under load. Several reports are
made one after the other. `pause_ms` is the system's time for the still copy, during
which the worker cannot map memory or fault; `longest_ms` are the longest requests of a
window with a report in it, beside those of windows of the same length without one;
`unexplained` is the share of the private memory without a cause. Sizes in MB.
"""

from __future__ import annotations

import threading
import time

from cowpreload import _core
from cowpreload.bench.server import Server
from cowpreload.board import open_board
from cowpreload.causes import Cause
from cowpreload.why.examine import examine
from measure import common
from measure.common import Figures, mb, spread

WINDOW = 6.0  # seconds: a report with its wait fits in


class Client:
    """Requests one page after the other and remembers how long each took."""

    def __init__(self, server: Server, paths: list[str]) -> None:
        self._server, self._paths = server, paths
        self._stop = threading.Event()
        self.took: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            began = time.monotonic()
            self._server.get(self._paths[number % len(self._paths)])
            self.took.append((began, time.monotonic() - began))
            number += 1

    def longest(self, since: float, until: float) -> float:
        """Milliseconds of the longest request begun in that time."""
        return max(took for began, took in self.took if since <= began < until) * 1000

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def _measure(server: Server, times: int) -> Figures:
    server.wait_serving()
    worker = next(iter(open_board(server.pid))).pid
    client = Client(server, common.mix(40))
    reports, beside, without = [], [], []
    try:
        time.sleep(WINDOW)
        for _ in range(times):
            began = time.monotonic()
            time.sleep(WINDOW)
            without.append(client.longest(began, began + WINDOW))
            began = time.monotonic()
            reports.append(examine(worker))
            time.sleep(max(0.0, began + WINDOW - time.monotonic()))
            beside.append(client.longest(began, began + WINDOW))
    finally:
        client.stop()
    reading = _core.take_reading(worker)
    return {
        "worker_mb": mb(reading.rss),
        "private_mb": mb(reading.private),
        "how": sorted({each.how.value for each in reports}),
        "pause_ms": spread([each.pause * 1000 for each in reports], 2),
        "seconds": spread([each.seconds for each in reports], 1),
        "unexplained": spread([each.share(Cause.UNEXPLAINED) for each in reports], 4),
        "longest_ms": spread(beside, 1),
        "longest_without_ms": spread(without, 1),
        "requests": len(client.took),
    }


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--times", type=int, default=9, help="reports, each mode")
    parser.add_argument("--catalogue", default="200", help="MB of the site's catalogue")
    arguments = parser.parse_args()
    figures: Figures = {}
    with common.example_site(
        arguments.site, SHOP_CATALOGUE_MB=arguments.catalogue
    ) as site:
        for mode in ("off", "auto"):
            common.say(f"why_pause: immortal {mode}")
            with common.gunicorn(site, 1, cow_immortal=mode) as server:
                figures[f"immortal_{mode}"] = _measure(server, arguments.times)
    common.report("why_pause", figures)


if __name__ == "__main__":
    main()
