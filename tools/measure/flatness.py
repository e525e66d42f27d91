"""Whether an immortal worker leaks: its private memory over 50,000 requests.

One gunicorn worker of the example site with immortality, another without, each under
the same requests. Gives private memory in MB at each mark and the slope behind the
first 5,000 requests, in bytes a request (least squares); what counts is the difference
of the two, for the application itself may grow.
"""

from __future__ import annotations

from cowpreload import _core
from cowpreload.bench.client import Load
from cowpreload.bench.stats import fit
from measure import common
from measure.common import Figures, Site, mb, mix

REQUESTS = 50_000
SETTLED = 5_000
MARK = 2_500


def _measure(site: Site, immortal: str, requests: int) -> Figures:
    marks, sizes, wrong = [], [], 0
    with common.gunicorn(site, 1, cow_immortal=immortal) as server:
        server.wait_serving(workers=1)
        for served in range(MARK, requests + 1, MARK):
            load = Load(server.port, mix(400), requests=MARK, seconds=600)
            report = load.start().finish()
            wrong += report.wrong + report.failed
            (worker,) = server.workers()
            marks.append(served)
            sizes.append(_core.take_reading(worker).private)
            common.say(f"flatness: immortal={immortal} {served} {mb(sizes[-1])} MB")
    settled = [pair for pair in zip(marks, sizes, strict=True) if pair[0] >= SETTLED]
    slope = fit(settled).slope
    return {
        "private_mb": dict(zip(map(str, marks), map(mb, sizes), strict=True)),
        "bytes_a_request": round(slope, 1),
        "wrong": wrong,
    }


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    arguments = parser.parse_args()
    with common.example_site(arguments.site) as site:
        figures = {
            immortal: _measure(site, immortal, arguments.requests)
            for immortal in ("auto", "off")
        }
    common.report("flatness", {"by_immortal": figures})


if __name__ == "__main__":
    main()
