"""Private memory of each worker on both hosts, as a share of the inherited heap.

The demo's modes and requests without its rates: the example site, 4 workers, 2,000
requests that read the whole catalogue. Gives, for each mode, the private memory of each
worker in MB, the heap that cow's master froze, and the largest share of it.
"""

from __future__ import annotations

import re

from cowpreload import _core
from cowpreload.bench.demo import PRELOADED, REQUESTS, ROUNDS, Demo
from cowpreload.units import MIB
from measure import common
from measure.common import Figures, mb


def _measure(demo: Demo, mode: str) -> Figures:
    with demo.start(mode) as server:
        wrong = 0
        for _ in range(ROUNDS):
            report = demo.load(server, REQUESTS)
            wrong += report.wrong + report.failed
        private = [_core.take_reading(pid).private for pid in server.workers()]
        found = re.search(r"cow: preload .* heap=(\d+)MiB", server.log)
    heap = int(found[1]) * MIB if found else 0
    return {"private_mb": [mb(each) for each in private], "heap": heap, "wrong": wrong}


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--only", default="", help="modes with this text in their name")
    modes = [mode for mode in PRELOADED if parser.parse_args().only in mode]
    figures: Figures = {}
    with Demo.closing() as demo:
        for mode in modes:
            figures[mode] = _measure(demo, mode)
    # Plain servers do not say how much they inherited: as much as cow's.
    heap = {mode.split()[0]: figures[mode]["heap"] for mode in modes if "cow" in mode}
    for mode, each in figures.items():
        size = heap[mode.split()[0]] / 1e6
        each["heap_mb"] = round(size, 1)
        each["largest_share"] = round(max(each["private_mb"]) / size, 4)
        del each["heap"]
    common.report("servers", {"modes": figures})


if __name__ == "__main__":
    main()
