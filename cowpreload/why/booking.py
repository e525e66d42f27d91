"""Book each page under one cause, and sum up. Pure.

A page was copied once, by its first write, and which write came first cannot be seen
afterwards. It is booked under the cause for which most of its objects and blocks
speak; ties go to the cause that `Cause` names first. `alone` counts the pages for which
nothing else speaks: what would be shared if only that cause went away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cowpreload.causes import Cause, Example, Row, Run

EXAMPLES = 10
_ORDER = {cause: number for number, cause in enumerate(Cause)}

# What speaks for a cause on one page: how many objects or blocks, and their name.
Found = Mapping[tuple[Cause, str], int]


def book(found: Found) -> Cause:
    """The cause of a page."""
    weights: Counter[Cause] = Counter()
    for (cause, _name), count in found.items():
        weights[cause] += count
    if not weights:
        return Cause.UNEXPLAINED
    return min(weights, key=lambda cause: (-weights[cause], _ORDER[cause]))


def sum_up(pages: Mapping[int, Found]) -> tuple[Row, ...]:
    """One row for each cause that has pages, largest first."""
    booked: Counter[Cause] = Counter()
    alone: Counter[Cause] = Counter()
    names: dict[Cause, Counter[str]] = {cause: Counter() for cause in Cause}
    first: dict[Cause, Counter[str]] = {cause: Counter() for cause in Cause}
    for found in pages.values():
        cause = book(found)
        booked[cause] += 1
        alone[cause] += len({each for each, _name in found}) <= 1
        here = {name: count for (each, name), count in found.items() if each is cause}
        for (each, name), count in found.items():
            names[each][name] += count
        if here:
            first[cause][max(here, key=lambda name: (here[name], name))] += 1
    rows = [
        Row(
            cause,
            pages_,
            alone[cause],
            len([name for name in names[cause] if name]),
            _examples(first[cause], names[cause]),
        )
        for cause, pages_ in booked.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.pages, _ORDER[row.cause])))


def _examples(first: Counter[str], names: Counter[str]) -> tuple[Example, ...]:
    ranked = sorted(
        (name for name in names if name),
        key=lambda name: (-first[name], -names[name], name),
    )
    return tuple(Example(name, first[name], names[name]) for name in ranked[:EXAMPLES])


def runs(pages: Mapping[int, Found], page_size: int) -> tuple[Run, ...]:
    """Neighbouring pages of one cause, by address."""
    found: list[Run] = []
    for page in sorted(pages):
        cause = book(pages[page])
        if found:
            last = found[-1]
            if last.cause is cause and last.start + last.pages * page_size == page:
                found[-1] = Run(last.start, last.pages + 1, cause)
                continue
        found.append(Run(page, 1, cause))
    return tuple(found)
