"""The figures of the demo as one table, for a terminal and for docs. Pure."""

from __future__ import annotations

from typing import Any

from cowpreload.bench.render import Table
from cowpreload.bench.scenario_tables import ratio
from cowpreload.units import MIB

HEAD = ("mode", "private", "shared", "total PSS", "recycled")
NO_PRELOAD = "gunicorn"


def demo_table(figures: dict[str, Any]) -> Table:
    """A row a mode; sizes in MiB, processor time relative to the plain host.

    A run from before one of them was measured has no such column.
    """
    few = list(figures["rows"][0].get("few", {}))
    rows = [
        (
            row["mode"],
            f"{row['private'] / MIB:.1f}",
            f"{row['shared'] / MIB:.1f}",
            f"{row['total_pss'] / MIB:.0f}",
            *(f"{row['few'][count] / MIB:.0f}" for count in few),
            str(row["recyclings"]),
        )
        for row in figures["rows"]
    ]
    head = (*HEAD[:-1], *(f"of {count}" for count in few), HEAD[-1])
    title = (
        f"CPython {figures['python']}, Django {figures['django']}, "
        f"gunicorn {figures['gunicorn']}, uWSGI {figures['uwsgi']}; "
        f"{figures['workers']} workers, {figures['requests']} requests; MiB, private "
        "and shared of a worker"
    )
    if few:
        title += f"; total PSS of all, and of {' and '.join(map(str, few))} workers"
    costs = [row.get("cpu") for row in figures["rows"]]
    if not any(costs):
        return Table(f"{title}:", head, tuple(rows))
    title += "; CPU a request relative to the plain host, median and quartiles of pairs"
    cells = [
        ratio(cost["ratio"]) if cost else "-" if row["mode"] == NO_PRELOAD else "1"
        for row, cost in zip(figures["rows"], costs, strict=True)
    ]
    whole = tuple((*row, cell) for row, cell in zip(rows, cells, strict=True))
    return Table(f"{title}:", (*head, "CPU a request"), whole)
