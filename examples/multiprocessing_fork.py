"""Share a loaded heap with multiprocessing: load, freeze, then fork.

    python examples/multiprocessing_fork.py

Prints what each worker has copied of it after reading all of it.
"""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path

import cowpreload

CATALOGUE = {
    f"article {i}": {"price": i / 100, "name": f"{i:x}"} for i in range(100_000)
}


def private_bytes() -> int:
    """What this process has for itself."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * sum(map(int, re.findall(r"^Private_\w+: +(\d+)", text, re.M)))


def total(_: int) -> tuple[float, int]:
    """Read the whole catalogue; the sum and the bytes that this copied."""
    before = private_bytes()
    prices = sum(each["price"] for each in CATALOGUE.values())
    return prices, private_bytes() - before


def main() -> None:
    report = cowpreload.freeze()
    print(f"frozen={report.objects} immortal={report.immortal.objects}")
    if report.why_mortal:
        print(f"not immortal: {report.why_mortal}")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for _, copied in pool.map(total, range(2), chunksize=1):
            share, heap = 100 * copied / report.bytes, report.bytes >> 20
            print(f"copied={copied >> 10}KiB heap={heap}MiB private={share:.1f}%")


if __name__ == "__main__":
    main()
