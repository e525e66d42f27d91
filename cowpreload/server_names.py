"""Which name each server has in metrics, kept while somebody watches. Pure.

Takes the servers that run now, and where they listen; gives names. The first server of
an application has its name, the next is `shop.wsgi (2)`. A number belongs to the
address: a server that ends leaves it to the one that listens there after it, and the
others keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cowpreload.view import ServerView


class ServerNames:
    """What was given at the looks before: by application, a number's address."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, str]] = {}

    def of(
        self, views: Sequence[ServerView], addresses: Mapping[int, str] | None = None
    ) -> list[str]:
        """A name for each, no two alike.

        Args:
            addresses: by the master's pid, any text; "" or none: not known. Two servers
                of one address are the same, of which the older goes soon, as in an
                upgrade by USR2: it keeps the name, and the newer has it afterwards.
        """
        keys = [
            (addresses or {}).get(each.master.pid) or f"pid {each.master.pid}"
            for each in views
        ]

        def order(at: int) -> tuple[bool, str, float]:
            is_pid = keys[at].startswith("pid ")
            return is_pid, "" if is_pid else keys[at], -views[at].master.age

        ordered = sorted(range(len(views)), key=order)
        numbers = self._numbers([_application(each) for each in views], keys, ordered)
        return [
            f"{_application(view)} ({numbers[at]})"
            if numbers[at] > 1
            else _application(view)
            for at, view in enumerate(views)
        ]

    def _numbers(
        self, applications: list[str], keys: list[str], ordered: list[int]
    ) -> dict[int, int]:
        given: dict[int, int] = {}
        taken = {each: set[int]() for each in applications}
        for at in ordered:  # those that have one first
            known = self._known.get(applications[at], {})
            free = [
                number
                for number, key in known.items()
                if key == keys[at] and number not in taken[applications[at]]
            ]
            if free:
                given[at] = min(free)
                taken[applications[at]].add(given[at])
        for at in ordered:
            if at not in given:
                mine = taken[applications[at]]
                given[at] = next(n for n in range(1, len(keys) + 2) if n not in mine)
                mine.add(given[at])
                self._known.setdefault(applications[at], {})[given[at]] = keys[at]
        return given


def _application(view: ServerView) -> str:
    return view.master.application or view.master.host or "unknown"
