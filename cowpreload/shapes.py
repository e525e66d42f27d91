"""Shapes: which of the paths that were served are the same page. Pure.

Takes Served records, and, where the framework can tell it, the route of a path; gives a
Shape for each page, with one example of a path, the most requested first. Paths that
differ in numbers, identifiers or slugs are one page:

    /product/17/           /product/#/      numbers, in any place
    /file/5f0c...9e.png    /file/#.png      UUIDs, and 16 and more hexadecimal digits
    /blog/my-first-post/   /blog/*/         slugs: known by their number

A slug looks like the name of a page, so that only many of them at one place tell that
it is one. native/served.c has the first two rules, too: its table does not grow by such
paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from cowpreload.candidates import Served, Shape
from cowpreload.paths import same_form

Route = Callable[[str], str]
"""Takes a path; gives what identifies its route, or "" where nothing does."""

# So many different names with a hyphen or the like, below one parent, are slugs.
SLUGS = 12
# So many of any kind: words of a wiki, user names. Not right below the root, where a
# site has as many pages of its own.
NAMES = 30
# A server for many hosts: the first few stand for all, which run the same code.
HOSTS = 4

_NUMBER = re.compile(r"%[0-9A-Fa-f]{2}|[0-9]+")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HEX = re.compile(r"[0-9A-Fa-f]{16,}")
_SLUG = re.compile(r"[-_.~+%#]")
_ANY = "*"


def _segment(text: str) -> str:
    name, dot, suffix = text.rpartition(".")
    if not dot:
        name, suffix = text, ""
    if _UUID.fullmatch(name) or _HEX.fullmatch(name):
        name = "#"
    return _NUMBER.sub(_number, name + dot + suffix)


def _number(found: re.Match[str]) -> str:
    """What stands for digits; an escaped letter of another script is no number."""
    return found[0] if found[0][0] == "%" else "#"


def plain_shape(path: str) -> str:
    """The shape of one path by itself: without its numbers and identifiers."""
    return "/".join(map(_segment, path.split("/")))


@dataclass
class _Node:
    """A segment, below the segments before it: paths that end here, and go on.

    `off`: a path that ends here is not wanted, nor any of the same page.
    """

    ends: list[Served] = field(default_factory=list)
    below: dict[str, _Node] = field(default_factory=dict)
    off: bool = False

    def at(self, path: str) -> _Node:
        """Where a path ends, from the root."""
        node = self
        for name in plain_shape(same_form(path)).split("/"):
            node = node.below.setdefault(name, _Node())
        return node

    def leads_off(self) -> bool:
        return self.off or any(each.leads_off() for each in self.below.values())

    def take(self, other: _Node) -> None:
        """Make the paths of `other` this segment's."""
        self.ends += other.ends
        self.off |= other.off
        for name, node in other.below.items():
            self.below.setdefault(name, _Node()).take(node)

    def merge_slugs(self, depth: int = 0) -> None:
        """Make the segments below this one that are slugs one segment."""
        names = [name for name in self.below if name]  # not the page of the parent
        slugs = [name for name in names if _SLUG.search(name)]
        if depth > 1 and len(names) >= NAMES:
            slugs = names
        if _ANY in names and self.below[_ANY].leads_off():
            slugs = names  # the operator says so
        elif len(slugs) < SLUGS:
            slugs = []
        if slugs:
            merged = self.below.setdefault(_ANY, _Node())
            for name in slugs:
                if name != _ANY:
                    merged.take(self.below.pop(name))
        for node in self.below.values():
            node.merge_slugs(depth + 1)


def _leaves(node: _Node, names: tuple[str, ...]) -> Iterable[tuple[str, list[Served]]]:
    if node.ends and not node.off:
        yield "/".join(names), node.ends
    for name, below in node.below.items():
        yield from _leaves(below, (*names, name))


def _by_look(
    pages: list[Served], off: Collection[str]
) -> Iterable[tuple[str, list[Served]]]:
    root = _Node()
    for page in pages:
        root.at(page.path).ends.append(page)
    for path in off:
        # With a slash at its end and without: many sites answer both.
        plain, mark, query = path.partition("?")
        for each in (plain.rstrip("/") or "/", plain.rstrip("/") + "/"):
            root.at(each + mark + query).off = True
    root.merge_slugs()
    return _leaves(root, ())


def _by_route(
    pages: list[Served], route: Route
) -> tuple[dict[str, list[Served]], list[Served]]:
    routed: dict[str, list[Served]] = {}
    unknown = []
    for page in pages:
        name = route(page.path)
        if name:
            routed.setdefault(name, []).append(page)
        else:
            unknown.append(page)
    return routed, unknown


def _shape(name: str, pages: list[Served]) -> Shape:
    # The shortest of equals, by the alphabet: the same one at each look.
    example = min(pages, key=lambda page: (-page.count, len(page.path), page.path))
    count = sum(page.count for page in pages)
    return Shape(name, example.path, example.host, count)


def _busiest_hosts(pages: Iterable[Served]) -> list[str]:
    counts: dict[str, int] = {}
    for page in pages:
        counts[page.host] = counts.get(page.host, 0) + page.count
    return sorted(counts, key=lambda host: (-counts[host], host))[:HOSTS]


def shapes(
    pages: Iterable[Served], route: Route | None = None, off: Collection[str] = ()
) -> list[Shape]:
    """One Shape for each page of each of the busiest hosts, the most requested first.

    Args:
        pages: what was served, in any order; one path may be there more than once.
        route: of a path; a framework's is better than its look.
        off: paths of pages that are left out, on all hosts; a segment may be `*`, any.
    """
    pages = list(pages)
    found = []
    for host in _busiest_hosts(pages):
        here = [page for page in pages if page.host == host]
        routed, unknown = _by_route(here, route) if route else ({}, here)
        found += [_shape(name, same) for name, same in routed.items()]
        found += [_shape(name, same) for name, same in _by_look(unknown, off)]
    return sorted(found, key=lambda each: (-each.count, each.path, each.host))


def merged(
    old: Iterable[Served], new: Iterable[Served], off: Collection[str] = ()
) -> list[Shape]:
    """The same of what was served before and since: the counts of both.

    The example is one of `new` where there is one: an old one may be gone.
    """
    old, new = list(old), list(new)
    both = shapes([*old, *new], off=off)
    counts = {(each.host, each.shape): each.count for each in both}
    hosts = {host for host, _ in counts}
    here = [*new, *(replace(each, count=-1) for each in old)]
    found = [
        replace(each, count=counts[each.host, each.shape])
        for each in shapes((each for each in here if each.host in hosts), off=off)
    ]
    return sorted(found, key=lambda each: (-each.count, each.path, each.host))
