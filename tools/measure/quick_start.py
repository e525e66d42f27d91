"""What the README's application takes under plain gunicorn, with --preload, with cow.

Runs `hello.py` of README.md by the three command lines, four workers and the same
requests each. Gives the total PSS of the server and the private memory of its largest
worker, in MiB.
"""

from __future__ import annotations

import re
import tempfile
import urllib.request
from pathlib import Path

from cowpreload import _core
from cowpreload.bench import server
from cowpreload.units import MIB
from measure import common
from measure.common import TOOLS, Figures

LINES = (
    "--workers 4",
    "--workers 4 --preload",
    "--workers 4 --worker-class cow --cow-warmup /",
)
REQUESTS = 60


def _application() -> str:
    """The README's first block of Python."""
    readme = (TOOLS.parent / "README.md").read_text()
    found = re.search(r"^```python\n(.*?)^```$", readme, re.M | re.S)
    assert found is not None
    return found[1]


def _measure(line: str, directory: Path) -> Figures:
    log = directory / "log"
    arguments = ["--config", "/dev/null", *line.split(), "hello"]
    with server.gunicorn(arguments, directory, log, {}) as running:
        running.wait_serving(workers=4)
        for _ in range(REQUESTS):
            with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/") as answer:
                assert answer.status == 200
        readings = [_core.take_reading(pid) for pid in running.workers()]
        total = sum(each.pss for each in [_core.take_reading(running.pid), *readings])
    return {
        "total_pss": round(total / MIB, 1),
        "private": round(max(each.private for each in readings) / MIB, 1),
    }


def main() -> None:
    """Measure and print."""
    common.parser(__doc__).parse_args()
    common.end_cleanly()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "hello.py").write_text(_application())
        figures = {line: _measure(line, directory) for line in LINES}
    common.report("quick_start", {"requests": REQUESTS, "lines": figures})


if __name__ == "__main__":
    main()
