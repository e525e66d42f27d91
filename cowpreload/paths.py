"""Paths: one way of writing for each, so that no other way gets past a rule. Pure.

Takes a path as somebody has written it; gives the form in which two are compared.
`/%72eport/`, `//report/`, `/./report/` and `/x/../report/` are `/report/` to a
framework, or to a proxy before it: werkzeug strips slashes in front, and what uWSGI
calls REQUEST_URI is from before nginx has resolved dots.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

# Decoded twice and more by some that should not. Each time is another round.
_MOST_ROUNDS = 8
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
# What is compared as it is: but for what has a meaning in a path.
_SAFE = _PRINTABLE.replace("%", "").replace("?", "")
_OTHERS = re.compile(r"%|//|/\.|[^!-~]")  # than what is the form already


def plain_path(path: bytes) -> str:
    """The same path to an application, in printable ASCII without spaces."""
    return quote(path, safe=_PRINTABLE)


def in_full(prefix: str, path: str) -> str:
    """A path of the board, which is below SCRIPT_NAME, as a request line has it."""
    return prefix + plain_path(_bytes(path))


def _bytes(path: str) -> bytes:
    """Servers give bytes as Latin-1; operators write letters."""
    try:
        return path.encode("latin-1")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogateescape")


def _decoded(path: bytes) -> bytes:
    for _ in range(_MOST_ROUNDS):
        before, path = path, unquote_to_bytes(path)
        if path == before:
            break
    return path


def _named(path: bytes) -> list[bytes]:
    """The segments that say something."""
    return [each for each in path.split(b"/") if each not in (b"", b".")]


def _resolved(names: list[bytes]) -> list[bytes]:
    found: list[bytes] = []
    for name in names:
        if name != b"..":
            found.append(name)
        elif found:
            found.pop()
    return found


def same_form(path: str) -> str:
    """The form in printable ASCII that all ways of writing this path have; of a query,
    nothing is changed."""
    if not _OTHERS.search(path):
        return path
    plain, mark, query = path.partition("?")
    decoded = _decoded(_bytes(plain))
    form = b"/" + b"/".join(_resolved(_named(decoded)))
    if form != b"/" and decoded.endswith((b"/", b"/.", b"/..")):
        form += b"/"
    return quote(form, safe=_SAFE) + mark + query


def decoded(path: str) -> str:
    """What the names in a path say, in whatever way they are written."""
    return _decoded(_bytes(path)).decode("utf-8", "replace")


def is_below(path: str, above: str) -> bool:
    """Whether `path` is `above`, or below it, in any way that both can be written.

    Args:
        path: as it was requested; bytes in Latin-1, if it is no ASCII.
        above: as an operator writes it, with letters or with percent signs.
    """
    names = _named(_decoded(_bytes(path)))
    parent = _resolved(_named(_decoded(above.encode("utf-8", "surrogateescape"))))
    # Some servers take `..` for a name.
    return any(each[: len(parent)] == parent for each in (names, _resolved(names)))
