"""The figures of the demo as one table, for a terminal and for docs. Pure."""

from __future__ import annotations

from typing import Any

from cowpreload.bench.render import Table
from cowpreload.units import MIB

HEAD = ("mode", "private/worker", "shared/worker", "total PSS", "req/s", "recycled")


def demo_table(figures: dict[str, Any]) -> Table:
    """A row a mode; sizes in MiB, rate relative to the plain host."""
    rows = tuple(
        (
            row["mode"],
            f"{row['private'] / MIB:.1f}",
            f"{row['shared'] / MIB:.1f}",
            f"{row['total_pss'] / MIB:.0f}",
            f"{row['rate']:.2f}",
            str(row["recyclings"]),
        )
        for row in figures["rows"]
    )
    title = (
        f"CPython {figures['python']}, Django {figures['django']}, "
        f"gunicorn {figures['gunicorn']}, uWSGI {figures['uwsgi']}; "
        f"{figures['workers']} workers, {figures['requests']} requests; MiB; "
        "req/s relative to the plain host:"
    )
    return Table(title, HEAD, rows)
