"""What follows from the figures: does it help, how many fit, what to set. Pure.

Takes a Tried; gives a Verdict, numbers and the lines to copy. Rules are written down
where they are applied, with their reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cowpreload.kinds import AUTO
from cowpreload.tryout.records import Life, Measured, Tried
from cowpreload.units import MIB, format_size

# A limit is to stop a leak, not a worker that serves more kinds of pages than a trial
# of minutes: twice what was seen, and at least as much above it as a request may take.
_TIMES = 2
_ABOVE = 64 * MIB
_STEP = 10 * MIB
# Less than this is no reason to change a server.
_WORTH = 0.1
_WORTH_BYTES = 5 * MIB
_MOST_FIT = 9999
# Workers below this have little that could be shared.
_SMALL = 15 * MIB
_ONLY_FOUND = (
    "No page was named, so that pages whose address has a number or a name in it were "
    "not requested: what they read is not in these figures. Name one of each kind, as "
    "with --get /product/1/."
)


@dataclass(frozen=True)
class Verdict:
    """Whether cowpreload saves memory here.

    Attributes:
        helps: whether it is worth it.
        before, after: bytes of total PSS: the best of the host's own ways, and ours.
        text: one sentence.
        reasons: why it saves little, or less than it could; may be empty.
    """

    helps: bool
    before: int
    after: int
    text: str
    reasons: tuple[str, ...] = ()

    @property
    def saved(self) -> int:
        return self.before - self.after


def limit(highest: int) -> int:
    """cow-max-private, in bytes, from the largest private memory that was seen."""
    wanted = max(_TIMES * highest, highest + _ABOVE)
    return -(-wanted // _STEP) * _STEP


def limit_for(measured: Sequence[Measured]) -> int:
    """The same from all workers of the cow ways; 0: there are none."""
    highest = [
        size
        for each in measured
        if each.way.cow
        for life in each.lives
        for size in life.private
    ]
    return limit(max(highest)) if highest else 0


def one_more(measured: Measured) -> int | None:
    """What one more worker costs, in bytes; None: it was not measured."""
    if len(measured.lives) < 2:
        return None
    first, last = measured.lives[0], measured.lives[-1]
    return round((last.total_pss - first.total_pss) / (last.workers - first.workers))


def fits(measured: Measured, room: int) -> int | None:
    """How many workers fit into `room`; None: their cost was not measured."""
    cost = one_more(measured)
    if cost is None:
        return None
    last = measured.lives[-1]
    base = last.total_pss - last.workers * cost
    return _workers(room - base, cost)


def fits_at_limit(measured: Measured, room: int, each: int) -> int | None:
    """How many fit even if every one of them stood at its limit of `each` bytes."""
    cost = one_more(measured)
    if cost is None:
        return None
    last = measured.lives[-1]
    return _workers(room - (last.total_pss - last.workers * cost), max(each, cost))


def _workers(room: int, cost: int) -> int:
    return max(0, min(_MOST_FIT, room // max(1, cost)))


def verdicts(tried: Tried) -> tuple[Verdict, ...]:
    """One for each host."""
    hosts = dict.fromkeys(each.way.host for each in tried.ways)
    return tuple(_verdict(tried, host) for host in hosts)


def _verdict(tried: Tried, host: str) -> Verdict:
    ours = next(each for each in tried.ways if each.way.host == host and each.way.cow)
    workers = tried.plan.workers
    theirs = {
        each.way.name: life
        for each in tried.ways
        if each.way.host == host and not each.way.cow and (life := each.at(workers))
    }
    mine = ours.at(workers)
    if mine is None or ours.error or not theirs:
        text = f"{ours.way.name} could not be measured; see its error."
        return Verdict(False, 0, 0, text)
    name = min(theirs, key=lambda each: theirs[each].total_pss)
    before, after = theirs[name].total_pss, mine.total_pss
    helps = before - after >= max(_WORTH * before, _WORTH_BYTES)
    size = f"{_mib(after)} MiB instead of {_mib(before)} ({after / before - 1:+.0%})"
    count = "1 worker needs" if workers == 1 else f"{workers} workers need"
    whether = "It helps" if helps else "It does not help"
    text = f"{whether}: {count} {size}, {ours.way.name} against {name}."
    reasons = _reasons(tried, ours, mine, theirs)
    if tried.plan.found and not helps:
        reasons = (_ONLY_FOUND, *reasons)
    return Verdict(helps, before, after, text, reasons)


def _reasons(
    tried: Tried, ours: Measured, mine: Life, theirs: Mapping[str, Life]
) -> tuple[str, ...]:
    """Why it saves little, or less than it could; the heaviest first."""
    found = []
    workers = tried.plan.workers
    if workers == 1:
        found.append(
            "One worker has nobody to share with but its master; what is saved grows "
            "with each worker more."
        )
    plain = max(
        sum(each.private) // max(1, len(each.private)) for each in theirs.values()
    )
    if plain < _SMALL:
        found.append(
            f"A worker has {_mib(plain)} MiB of its own without us: there is little "
            "to share."
        )
    if ours.log.heap and not ours.log.immortal:
        found.append(_mortal(tried.versions.get("python", "")))
    if ours.log.heap and not ours.log.warmed:
        found.append(
            "No page was warmed: what the first requests load and fill is private. "
            "Name paths with --get."
        )
    private = sorted(mine.private)[len(mine.private) // 2] if mine.private else 0
    if ours.why and ours.why.new >= 0.5 and private > _SMALL:
        found.append(
            f"{ours.why.new:.0%} of a worker's private memory is new since the fork: "
            "what its requests make, or what the application loads at its first one "
            "(lazily); a path that loads it belongs into cow-warmup, and what requests "
            "make is theirs in every mode."
        )
    return tuple(found)


def _mortal(version: str) -> str:
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if parts and parts < (3, 12):
        return (
            f"CPython {version} writes a reference count whenever it reads an object: "
            "what requests read is copied. 3.12 and newer can have an immortal heap."
        )
    return "The heap was not made immortal; the log of the server says why."


def _mib(size: float) -> str:
    return f"{size / MIB:.0f}"


def hint(statuses: Mapping[str, set[int]]) -> str:
    """What to try where every page answers with an error."""
    found = {status for each in statuses.values() for status in each}
    if found <= {400, 421}:
        return "a site that refuses its host: --header 'Host: www.example.com'; "
    if found <= {401, 403}:
        return "pages behind a login: --header 'Cookie: sessionid=...'; "
    if found == {404}:
        return "name pages that there are with --get; "
    return ""


def max_private(tried: Tried) -> int:
    """The limit that was advised and run; 0: no cow way was measured."""
    return max((each.limit for each in tried.limited), default=0)


def configuration(tried: Tried) -> dict[str, str]:
    """The lines to copy, by file name; empty where no cow way was measured."""
    plan, size = tried.plan, max_private(tried)
    ours = [each for each in tried.ways if each.way.cow and each.lives]
    if not ours:
        return {}
    files = {}
    if any(each.way.host == "gunicorn" for each in ours):
        files["gunicorn.conf.py"] = _gunicorn(tried, size)
    ini = ["; and the lines that `cowpreload plugin build` prints"]
    ini += [f"processes = {plan.workers}", "master = true"]
    ini += [f"cow-warmup = {each}" for each in plan.warmup]
    ini += [f"cow-max-private = {_size(size)}"] if size else []
    if plan.interface == "WSGI":
        files["uwsgi.ini"] = "\n".join(ini)
    return files


def _gunicorn(tried: Tried, size: int) -> str:
    plan = tried.plan
    lines = [
        *(f"{name} = {_quoted(value)}" for name, value in plan.cow_lines),
        f"workers = {plan.workers}",
        f"cow_warmup = [{', '.join(map(_quoted, plan.warmup))}]",
    ]
    if size:
        lines.append(f'cow_max_private = "{_size(size)}"')
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _size(size: int) -> str:
    return format_size(size).removesuffix("iB")


def warms_itself(tried: Tried) -> bool:
    """Whether routes are found without a list."""
    return AUTO in tried.plan.warmup
