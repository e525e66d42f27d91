"""An application with metrics of its own, in prometheus_client's multi-process mode."""

from __future__ import annotations

from app import application as inner
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from cowpreload.prometheus import CowCollector

PAGES = Counter("shop_pages", "Pages that this application has served.")
REGISTRY.register(CowCollector())  # the other mode


def application(environ, start_response):
    if environ["PATH_INFO"] == "/metrics":
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        registry.register(CowCollector())
    elif environ["PATH_INFO"] == "/metrics/one":
        registry = REGISTRY
    else:
        PAGES.inc()
        return inner(environ, start_response)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [generate_latest(registry)]
