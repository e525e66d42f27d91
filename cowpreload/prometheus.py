"""A collector for applications that show metrics of their own: prometheus_client's.

    from prometheus_client import REGISTRY
    from cowpreload.prometheus import CowCollector

    REGISTRY.register(CowCollector())

Whichever worker answers the scrape tells of all workers of its server: what it shows is
on the board that they share. So it needs no files, and goes as well with
prometheus_client's multi-process mode, in the registry that is made for each scrape:

    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    registry.register(CowCollector())

In a process that is no worker of ours it shows nothing. Must not raise in a scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as ClientMetric
from prometheus_client.registry import Collector

from cowpreload import servers, watch
from cowpreload.errors import RAISED
from cowpreload.metrics import COUNTER, DECLARED, Family, families
from cowpreload.view import ServerView

# Workers read themselves; the scrape must not read them all once more.
_BOARD = 60.0


def _family(family: Family) -> ClientMetric:
    metric = family.metric
    kind = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
    made = kind(metric.name, metric.help, labels=("server", *metric.labels))
    for labels, value in family.samples:
        made.add_metric([text for _, text in labels], value)
    return made


def _look() -> list[ServerView]:
    board = watch.board()
    if board is None:
        return []
    try:
        return [servers.look(board, _BOARD)]
    except RAISED:
        return []


class CowCollector(Collector):  # type: ignore[misc]
    """The metrics of the server that this process is a worker of: docs/metrics.md."""

    def describe(self) -> Iterable[ClientMetric]:
        """The names, for a registry that looks for duplicates: without a board."""
        return [_family(Family(each, ())) for each in DECLARED]

    def collect(self) -> Iterator[ClientMetric]:
        """As the board has them now."""
        for each in families(_look()):
            yield _family(each)
