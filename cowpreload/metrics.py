"""Metrics: what the exporter and the collector show of running servers. Pure.

Every metric is declared here once, with how it is read out of a view; docs/metrics.md
renders the table. Takes ServerViews; gives Families. Names are Prometheus': base units,
`_bytes`, `_seconds`, `_total` for what only rises. Labels are the server and the slot,
never a pid: they are the same after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cowpreload.metric_kinds import (
    COUNTER,
    Family,
    Labels,
    by_reason,
    counter,
    gauge,
    info,
    known,
    master,
    memory,
    one,
    slots,
)
from cowpreload.server_names import ServerNames
from cowpreload.view import ServerView

__all__ = ["COUNTER", "DECLARED", "Family", "Labels", "families", "table"]

_OF_SLOTS = (
    gauge(
        "worker_private_bytes",
        "What the system gets back when the worker goes; limits judge it.",
        known(lambda slot: slot.private),
        "slot",
    ),
    gauge(
        "worker_shared_bytes",
        "What the worker shares with its master and the others.",
        known(lambda slot: slot.shared),
        "slot",
    ),
    gauge(
        "worker_pss_bytes",
        "Proportional set size of the worker.",
        known(lambda slot: slot.pss),
        "slot",
    ),
    gauge(
        "worker_evictable_bytes",
        "Clean private memory, which the system takes when it needs it; not limited.",
        known(lambda slot: slot.evictable),
        "slot",
    ),
    gauge(
        "worker_growth_bytes",
        "Private memory over that of the worker when it became ready.",
        slots(lambda slot: slot.grown if slot.ready_age else None),
        "slot",
    ),
    gauge(
        "worker_limit_bytes",
        "Private memory at which the worker is recycled; none: no sample.",
        slots(lambda slot: slot.soft or None),
        "slot",
    ),
    gauge(
        "worker_hard_limit_bytes",
        "Private memory at which the worker is killed; none: no sample.",
        slots(lambda slot: slot.max_private_hard or None),
        "slot",
    ),
    gauge(
        "worker_over_limit",
        "1 if the worker is over one of its limits, or leaves because of one.",
        slots(lambda slot: int(slot.is_passing)),
        "slot",
    ),
    gauge(
        "worker_ready",
        "1 if the worker serves; 0 while it boots or leaves.",
        slots(lambda slot: int(slot.state == "ready")),
        "slot",
    ),
    gauge(
        "worker_generation",
        "How often the slot was filled.",
        slots(lambda slot: slot.generation),
        "slot",
    ),
    gauge(
        "worker_age_seconds",
        "Since the worker was forked.",
        slots(lambda slot: slot.age),
        "slot",
    ),
    gauge(
        "worker_reading_age_seconds",
        "How old the figures of the worker's memory are.",
        known(lambda slot: slot.read_age),
        "slot",
    ),
    counter(
        "worker_requests",
        "Requests that the slot's workers have served, all generations.",
        slots(lambda slot: slot.served),
        "slot",
    ),
)

_OF_SERVERS = (
    gauge(
        "server_info",
        "1 for each running server; what serves which application.",
        info,
        "host",
        "application",
    ),
    gauge("workers", "Workers of the server.", one(lambda view: view.totals.workers)),
    gauge(
        "pss_bytes",
        "Memory of the server: proportional set sizes of its master and workers.",
        one(lambda view: view.totals.pss if view.totals.is_whole else None),
    ),
    gauge(
        "memory_limit_bytes",
        "What the server may take: its tightest control group's limit, or the machine.",
        memory(lambda view: view.totals.memory),
        "source",
    ),
    gauge(
        "memory_used_bytes",
        "What is taken of that, by whoever shares it.",
        memory(lambda view: view.totals.memory_used),
        "source",
    ),
    gauge(
        "budget_bytes",
        "What master and workers may take together (cow-budget); none: no sample.",
        one(lambda view: view.totals.budget or None),
    ),
    gauge(
        "budget_counted_bytes",
        "What the server holds against its budget, by its own last readings.",
        one(lambda view: view.totals.counted if view.totals.budget else None),
    ),
    gauge(
        "master_private_bytes",
        "Private memory of the master.",
        master(lambda master: master.private),
    ),
    gauge(
        "master_shared_bytes",
        "What the master shares with its workers, and with others.",
        master(lambda master: master.shared),
    ),
    gauge(
        "master_pss_bytes",
        "Proportional set size of the master.",
        master(lambda master: master.pss),
    ),
    gauge(
        "master_start_time_seconds",
        "When the master was ready to fork, since the epoch.",
        one(lambda view: round(view.at - view.master.age)),
    ),
    gauge(
        "inherited_bytes",
        "Memory of the master at the last freeze, which its workers inherit.",
        one(lambda view: view.master.frozen.inherited if view.master.frozen else None),
    ),
    gauge(
        "freeze_seconds",
        "What the last freeze took: to collect, make immortal and freeze.",
        one(lambda view: view.master.frozen.seconds if view.master.frozen else None),
    ),
    counter(
        "freezes",
        "Freezes of the master: the start's, and one for each warm up anew.",
        one(lambda view: view.master.frozen.generation if view.master.frozen else 0),
    ),
    counter(
        "recyclings",
        "Workers told to leave after their requests, by reason.",
        by_reason(lambda view: view.counts.recycled),
        "reason",
    ),
    counter(
        "kills",
        "Workers killed in the midst of requests, by reason.",
        by_reason(lambda view: view.counts.killed),
        "reason",
    ),
    counter(
        "unheeded",
        "Workers that had to be told a second time to leave.",
        one(lambda view: view.counts.unheeded),
    ),
    counter(
        "readings",
        "Readings of their memory that workers took.",
        one(lambda view: view.counts.readings),
    ),
    counter(
        "readings_failed",
        "Readings that gave nothing: no limit acts meanwhile.",
        one(lambda view: view.counts.readings_failed),
    ),
)
DECLARED: Final = _OF_SERVERS + _OF_SLOTS


def families(
    views: Sequence[ServerView], names: Sequence[str] | None = None
) -> list[Family]:
    """All metrics, with the samples of all servers.

    Args:
        names: the `server` of each, as whoever looks again and again has given them.
    """
    given = ServerNames().of(views) if names is None else names
    servers = list(zip(given, views, strict=True))
    return [
        Family(
            metric,
            tuple(
                ((("server", name), *labels), float(value))
                for name, view in servers
                for labels, value in metric.read(view)
            ),
        )
        for metric in DECLARED
    ]


def table() -> str:
    """The metrics, as docs/metrics.md shows them."""
    rows = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    rows += [
        f"| `{each.sample_name}` | {each.kind} | "
        f"{', '.join(('server', *each.labels))} | {each.help} |"
        for each in DECLARED
    ]
    return "\n".join(rows)
