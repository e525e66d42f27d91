"""All ways at the same time: processor time in pairs, and the advised limit at work.

Takes what was measured of each way alone; gives the same with processor time, and what
became of the workers that ran with the limit. A busy machine disturbs all ways alike:
only ratios of one block mean something.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from cowpreload.bench.hall import Block, Hall, in_turn
from cowpreload.bench.observe import look
from cowpreload.bench.server import Server
from cowpreload.bench.stats import spread
from cowpreload.tryout.advice import limit_for
from cowpreload.tryout.logs import facts
from cowpreload.tryout.pages import Pages
from cowpreload.tryout.records import Limited, Measured
from cowpreload.tryout.start import start, wait_serving

BLOCK = 0.5  # seconds of processor time that a block is to take: 50 ticks
LEAST = 20  # requests of a block
WARM = 50  # requests that each server has had before


def side_by_side(
    hall: Hall, pages: Pages, measured: Sequence[Measured], workers: int
) -> tuple[list[Measured], list[Limited]]:
    """Serve blocks of requests from every way in turn.

    Args:
        measured: the ways that serve.
        workers: of each server.
    """
    plan, size = pages.plan, limit_for(measured)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(start(hall, plan, each.way, workers, size))
            for each in measured
        ]
        for server in servers:
            wait_serving(server, plan, workers)
        first = pages.mix(max(len(plan.paths), min(WARM, plan.requests)))
        warm = in_turn(pages.load, servers, [first, first])
        took = warm[0][-1].cpu_ms / 1000
        most = max(LEAST, round(BLOCK / took) if took else plan.requests)
        blocks = [pages.mix(min(plan.requests, most))] * plan.pairs
        served = in_turn(pages.load, servers, blocks)
        requests = 2 * len(first) + sum(map(len, blocks))
        limited = [
            _limited(each, server, size, requests)
            for each, server in zip(measured, servers, strict=True)
            if each.way.cow
        ]
    timed = [
        _timed(each, served[0], given)
        for each, given in zip(measured, served, strict=True)
    ]
    return timed, limited


def _timed(each: Measured, plain: Sequence[Block], given: Sequence[Block]) -> Measured:
    pairs = zip(plain, given, strict=True)
    ratios = [two.cpu_ms / one.cpu_ms for one, two in pairs if one.cpu_ms]
    return replace(
        each,
        cpu=spread(ratios, 2) if ratios else None,
        cpu_ms=spread([block.cpu_ms for block in given], 2),
    )


def _limited(each: Measured, server: Server, size: int, requests: int) -> Limited:
    highest = max((worker.private for worker in look(server).workers), default=0)
    recycled = facts(server.log).recycled
    return Limited(each.way.name, size, requests, highest, recycled)
