"""What a process of multiprocessing's pool copies when it reads all that was loaded.

    cd tools && ../build/venv-3.13/bin/python -m measure.process_pools

tests/programs/process_pool.py with 200,000 articles: by fork and by a fork server that
has preloaded them; nothing frozen, gc.freeze() by hand, and cowpreload's. Gives the
private memory of a process in MB, the mean of two.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from measure import common
from measure.common import Figures, mb

PROGRAMS = Path(__file__).parent.parent.parent / "tests" / "programs"
METHODS = ("fork", "forkserver")
MODES = {"nothing frozen": "plain", "gc.freeze() by hand": "gc", "cowpreload": "cow"}


def _private(method: str, mode: str) -> float:
    done = subprocess.run(
        [sys.executable, "process_pool.py", method, mode],
        cwd=PROGRAMS,
        env={**os.environ, "SHOP_ARTICLES": "200000"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    found = [after for _, after in json.loads(done.stdout)]
    return mb(sum(found) / len(found))


def main() -> None:
    """Measure and print."""
    common.parser(__doc__).parse_args()
    figures: Figures = {
        method: {name: _private(method, mode) for name, mode in MODES.items()}
        for method in METHODS
    }
    common.report("process_pools", {"methods": figures})


if __name__ == "__main__":
    main()
