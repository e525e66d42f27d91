"""What a request costs in processor time, with all that cowpreload does and without.

Both servers run side by side and serve each block of requests in turn. Requests a
second are no answer on a machine that does other work: pairs of the same server were
seen to differ by a factor of two. Processor time hardly notices other work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cowpreload.bench.hall import Block, Hall, paired
from cowpreload.bench.journal import Journal, say
from cowpreload.bench.mode import HOSTS, Mode, ours, plain
from cowpreload.bench.scenarios import Options
from cowpreload.bench.site import browsing
from cowpreload.bench.stats import Figures, spread

METHOD = (
    "The example shop with 4 workers, plain and all side by side, each block of "
    "requests served by both in turn, the first one changing. Processor time is "
    "utime and stime of /proc/PID/stat, of the master and all its workers, divided by "
    "the requests of the block; the ratio is of the two times of one block. Every "
    "answer is checked."
)


@dataclass(frozen=True)
class Plan:
    """The numbers of one size.

    Attributes:
        warm: requests to each server before the first block.
        pairs: blocks served by both servers.
        block: requests of such a block.
        environ: of the site.
        seconds: what the whole takes on a machine of 2 cores, about.
    """

    warm: int
    pairs: int
    block: int
    environ: tuple[tuple[str, str], ...]
    seconds: int
    workers: int = 4


PLANS = {
    "full": Plan(200, 11, 200, (), 120),
    "quick": Plan(60, 3, 60, (("SHOP_CATALOGUE_MB", "40"), ("SHOP_NELSON", "0")), 20),
    "tiny": Plan(4, 2, 12, (("SHOP_CATALOGUE_MB", "5"), ("SHOP_NELSON", "0")), 6, 2),
}


def costs(plain: Sequence[Block], ours: Sequence[Block]) -> Figures:
    """Milliseconds of processor time a request, and the ratio of each pair. Pure."""
    pairs = list(zip(plain, ours, strict=True))
    return {
        "plain": spread([each.cpu_ms for each in plain], 2),
        "all": spread([each.cpu_ms for each in ours], 2),
        "ratio": spread([other.cpu_ms / one.cpu_ms for one, other in pairs]),
    }


def _compare(hall: Hall, plan: Plan, modes: tuple[Mode, Mode]) -> Figures:
    environ = dict(plan.environ)
    with (
        hall.start(modes[0], plan.workers, environ) as first,
        hall.start(modes[1], plan.workers, environ) as second,
    ):
        for each in (first, second):
            each.wait_serving(workers=plan.workers, seconds=300)
            hall.load(each, browsing(each, plan.warm))
        blocks = [browsing(first, plan.block)] * plan.pairs
        return costs(*paired(hall, first, second, blocks))


def run(hall: Hall, journal: Journal, plan: Plan, options: Options) -> None:
    """Both hosts, one after the other."""
    for host in HOSTS:
        modes = plain(host), ours(host)
        say(f"cpu: {modes[1].shown} against {modes[0].shown}: {plan.pairs} pairs")
        try:
            value = _compare(hall, plan, modes)
        except (RuntimeError, TimeoutError, OSError) as error:
            hall.wrong += 1
            journal.note(f"{host}: failed: {error}")
            continue
        journal.put("cpu", host, value=value)
