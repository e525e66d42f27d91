"""What is to be run, from what the user named and what the application is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cowpreload.candidates import Served
from cowpreload.kinds import AUTO
from cowpreload.shapes import shapes
from cowpreload.tryout.records import Plan, Probed, Way

PLAIN = Way("gunicorn", "gunicorn", cow=False, preload=False)
PRELOAD = Way("gunicorn --preload", "gunicorn", cow=False, preload=True)
COW = Way("gunicorn cow", "gunicorn", cow=True, preload=True)
UWSGI = Way("uWSGI", "uwsgi", cow=False, preload=True)
UWSGI_COW = Way("uWSGI cow", "uwsgi", cow=True, preload=True)

# Of an application's own routes; a site's admin alone may be dozens.
ROUTES = 12
# Pages that are warmed by name, beside those that auto finds.
LISTED = 8
PAIRS = 7


def ways(uwsgi: bool) -> tuple[Way, ...]:
    """What most people run comes first: all others are compared with it."""
    return (PLAIN, PRELOAD, COW, *((UWSGI, UWSGI_COW) if uwsgi else ()))


def counts(workers: int) -> tuple[int, ...]:
    """Numbers of workers to measure: two, so that one more is measured, not guessed."""
    return (1, 2) if workers <= 2 else (max(2, workers // 2), workers)


def warmup(paths: Sequence[str], routes: Sequence[str]) -> tuple[str, ...]:
    """cow-warmup: auto, and of each kind of page that it cannot find one by name.

    Args:
        paths: that the user named and that answer.
        routes: that auto finds by itself.
    """
    known = {each.partition("?")[0] for each in routes}
    unknown = [each for each in paths if each.partition("?")[0] not in known]
    kinds = shapes(Served(path=each, host="", count=1) for each in unknown)
    first = {each.path for each in kinds}
    listed = [each for each in dict.fromkeys(unknown) if each in first]
    return (*((AUTO,) if routes else ()), *listed[:LISTED]) or (AUTO,)


def make(
    app: str,
    probed: Probed,
    given: Iterable[str],
    workers: int,
    requests: int,
    headers: Iterable[tuple[str, str]] = (),
    config: str = "",
    ini: str = "",
) -> Plan:
    """The plan; without `given` paths the root and the application's own routes."""
    named = tuple(dict.fromkeys(given))
    found = () if named else tuple(dict.fromkeys(("/", *probed.routes[:ROUTES])))
    return Plan(
        app=app,
        interface=probed.interface,
        ways=ways(bool(ini)),
        workers=workers,
        counts=counts(workers),
        requests=requests,
        paths=named or found,
        found=found,
        headers=tuple(headers),
        pairs=PAIRS if requests >= 100 else 3,
        warmup=warmup(named or found, probed.routes),
        config=config,
        ini=ini,
        worker_class=probed.worker_class,
        cow_lines=probed.cow_lines,
    )
