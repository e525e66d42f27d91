"""The page that `cowpreload try` prints: 80 columns, for a person. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from textwrap import fill

from cowpreload.bench.render import WIDTH, Table
from cowpreload.tryout.advice import (
    configuration,
    fits,
    fits_at_limit,
    max_private,
    one_more,
    verdicts,
)
from cowpreload.tryout.records import Figures, Measured, Tried
from cowpreload.units import MIB, format_size

_SHOWN = 5  # lines of each list
_WHY = 3


def page(tried: Tried) -> str:
    """Everything, most important first."""
    parts = [
        "\n".join(_wrapped(each.text) for each in verdicts(tried)),
        *_reasons(tried),
        _table(tried).terminal(),
        *_errors(tried),
        _answers(tried),
        *_lists(tried),
        *_why(tried),
        *_configuration(tried),
        *(_note(each) for each in tried.notes),
    ]
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, indent: str = "  ") -> str:
    return fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _note(text: str) -> str:
    """A sentence; what it quotes is left as it is."""
    first, _, rest = text.partition("\n")
    return _wrapped(f"Note: {first}") + (f"\n{rest}" if rest else "")


def _reasons(tried: Tried) -> list[str]:
    reasons = [reason for each in verdicts(tried) for reason in each.reasons]
    return ["\n".join(_wrapped(f"- {each}") for each in dict.fromkeys(reasons))]


def title(tried: Tried) -> str:
    """What ran, in one line."""
    plan, versions = tried.plan, tried.versions
    names = (("gunicorn", "gunicorn"), ("uwsgi", "uWSGI"))
    shown = [
        f"{name} {versions[key]}"
        for key, name in names
        if key in versions and (key != "uwsgi" or plan.ini)
    ]
    count = "1 worker" if plan.workers == 1 else f"{plan.workers} workers"
    return (
        f"{plan.app} ({plan.interface}), CPython {versions['python']}, "
        f"{', '.join(shown)}; {count}, {plan.requests} requests to "
        f"{len(plan.paths)} path{'s' * (len(plan.paths) != 1)}"
    )


def _table(tried: Tried) -> Table:
    counts = tried.plan.counts
    rows = []
    for each in tried.ways:
        life = each.at(tried.plan.workers)
        private = statistics.median(life.private) if life and life.private else None
        cost, count = one_more(each), fits(each, tried.room.size)
        rows.append(
            (
                each.way.name,
                "-" if private is None else f"{private / MIB:.1f}",
                *(_total(each, workers) for workers in counts),
                "-" if cost is None else f"{cost / MIB:.1f}",
                "-" if count is None else str(count),
                "1" if each is tried.ways[0] else _ratio(each.cpu),
            )
        )
    head = ("MiB", "private", *(_of(each) for each in counts))
    text = (
        f"{title(tried)}; private memory of a worker, total PSS with the master, what "
        "one more worker costs, processor time of a request (median and quartiles of "
        f"pairs):"
    )
    foot = (
        f"fit: into the {tried.room.size / MIB:.0f} MiB {tried.room.source}."
        f"{_at_limit(tried)}"
    )
    return Table(text, (*head, "one more", "fit", "CPU"), tuple(rows), foot)


def _of(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"


def _total(measured: Measured, workers: int) -> str:
    life = measured.at(workers)
    return f"{life.total_pss / MIB:.0f}" if life else "-"


def _ratio(found: Figures | None) -> str:
    if not found:
        return "-"
    low, high = found["quartiles"]
    return f"{found['median']:.2f} ({low:.2f}-{high:.2f})"


def _at_limit(tried: Tried) -> str:
    ours = next((each for each in tried.ways if each.way.cow), None)
    size = max_private(tried)
    if ours is None or not size:
        return ""
    count = fits_at_limit(ours, tried.room.size, size)
    return (
        f" {count} of {ours.way.name} would, if each stood at the limit of "
        f"{format_size(size)} below."
    )


def _errors(tried: Tried) -> Iterator[str]:
    for each in tried.ways:
        if each.error:
            first, _, rest = each.error.partition("\n")
            yield f"{_wrapped(f'{each.way.name} failed: {first}')}\n{rest}".rstrip()


def _answers(tried: Tried) -> str:
    """What differs in answers, and what was lost."""
    lines = []
    for each in tried.ways[1:]:
        lines += [
            f"{each.way.name}: {found.path}: {found.what}" for found in each.differences
        ]
    lines += [
        f"{each.way.name}, {_of(life.workers)}: {life.wrong} of {life.requests} "
        "answers did not come, or not with a status of this page"
        for each in tried.ways
        for life in each.lives
        if life.wrong
    ]
    if not lines:
        pages = [path for path, _ in tried.statuses if path in tried.plan.paths]
        text = _wrapped(
            "Answers: the same status and body in all modes, but for what varies by "
            f"itself ({len(pages)} page{'s' * (len(pages) != 1)} compared)."
        )
    else:
        text = f"Answers differ:\n{_listed(lines)}"
    if tried.uncompared:
        shown = ", ".join(tried.uncompared[:_SHOWN])
        text += f"\n{_wrapped(f'Of {shown} only the status: they vary in length.')}"
    return text


def _listed(lines: Sequence[str]) -> str:
    shown = [_wrapped(f"- {each}") for each in lines[:_SHOWN]]
    if len(lines) > _SHOWN:
        shown.append(f"  and {len(lines) - _SHOWN} more: --json has all")
    return "\n".join(shown)


def _lists(tried: Tried) -> Iterator[str]:
    """The findings of the audit."""
    ours = [each for each in tried.ways if each.way.cow and each.lives]
    found = list(dict.fromkeys(line for each in ours for line in each.log.findings))
    if found:
        yield f"Fork safety, to look at before you switch:\n{_listed(found)}"
    elif ours:
        yield "Fork safety: the audit found nothing that would not survive the fork."


def _why(tried: Tried) -> Iterator[str]:
    for each in tried.ways:
        if each.why:
            lines = [f"- {line}" for line in each.why.advice[:_WHY]]
            yield "\n".join(
                [
                    f"Why a worker of {each.way.name} has "
                    f"{each.why.private / MIB:.1f} MiB of its own:",
                    *map(_wrapped, lines),
                ]
            )


def _configuration(tried: Tried) -> Iterator[str]:
    helps = any(each.helps for each in verdicts(tried))
    for name, text in configuration(tried).items():
        if name.endswith(".ini") and not tried.plan.ini:
            continue  # to be found in the JSON
        lines = "\n".join(f"    {line}" for line in text.splitlines())
        head = "To copy into" if helps else "If you want it all the same, in"
        yield f"{head} {name}:\n\n{lines}"
    yield from _limits(tried)


def _limits(tried: Tried) -> Iterator[str]:
    for each in tried.limited:
        recycled = (
            "no worker was recycled"
            if not each.recycled
            else f"{each.recycled} workers were recycled: it is too low"
        )
        yield _wrapped(
            f"Run with that limit, {each.way}: {each.requests} requests, {recycled}; "
            f"the largest worker had {each.highest / MIB:.1f} MiB of its own.",
            "",
        )
