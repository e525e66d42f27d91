"""Whether two ways answer the same, but for what varies by itself. Pure.

Takes the answers of each way to the same page, more than one of each; gives what
differs. A token that differs between two answers of one way (a CSRF token, a time, a
pid) varies by itself and is left out; so is the server's own address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cowpreload.tryout.records import Answer, Difference

_MOST = 1 << 20  # bytes of a body that are compared
_TOKENS = re.compile(rb"[A-Za-z0-9_]+|[^A-Za-z0-9_]")
_SHOWN = 32  # characters of what differs

# A body as its tokens.
Tokens = list[bytes]


def tokens(answer: Answer, port: int) -> Tokens:
    """The body in words and signs, without the port that the server happens to have."""
    body = answer.body[:_MOST].replace(b"127.0.0.1:%d" % port, b"127.0.0.1:PORT")
    return _TOKENS.findall(body)


def varies(bodies: Sequence[Tokens]) -> bool:
    """Whether a page of one way differs from request to request in length, too."""
    return len({len(each) for each in bodies}) > 1


def difference(
    path: str,
    plain: Sequence[tuple[int, Tokens]],
    other: Sequence[tuple[int, Tokens]],
) -> Difference | None:
    """What is different; None where nothing is, but for what varies by itself.

    Args:
        plain, other: status and body of each answer of the two ways.
    """
    usual = {status for status, _ in plain}
    for status, _ in other:
        if status not in usual:
            return Difference(path, f"status {status} instead of {_listed(usual)}")
    first, second = ([body for _, body in each] for each in (plain, other))
    if varies(first) or varies(second):
        return None
    if len(first[0]) != len(second[0]):
        return Difference(path, _lengths(first[0], second[0]))
    places = [
        number
        for number in range(len(first[0]))
        if len({body[number] for body in first}) == 1
        and len({body[number] for body in second}) == 1
        and first[0][number] != second[0][number]
    ]
    if not places:
        return None
    at = places[0]
    return Difference(
        path,
        f"{_count(len(places))}: {_shown(second[0], at)} instead of "
        f"{_shown(first[0], at)}",
    )


def _listed(statuses: set[int]) -> str:
    return ", ".join(map(str, sorted(statuses)))


def _count(places: int) -> str:
    return "in one place" if places == 1 else f"in {places} places"


def _shown(body: Tokens, at: int) -> str:
    """What stands there, with what is around it."""
    text = b"".join(body[max(0, at - 4) : at + 5]).decode(errors="replace")
    text = " ".join(text.split())
    return repr(text[:_SHOWN])


def _lengths(plain: Tokens, other: Tokens) -> str:
    same = next(
        (
            number
            for number, (one, two) in enumerate(zip(plain, other, strict=False))
            if one != two
        ),
        min(len(plain), len(other)),
    )
    sizes = [sum(map(len, each)) for each in (other, plain)]
    return (
        f"{sizes[0]} bytes instead of {sizes[1]}: {_shown(other, same)} instead of "
        f"{_shown(plain, same)}"
    )
