"""The text of a warm-up file: which pages visitors have requested, one a line. Pure.

Takes bytes, as anybody may have edited them, and gives a Kept; takes pages and gives
bytes. Reading never raises. The form:

    #: cowpreload warm-up file 1
    #: application shop.wsgi
          1702 shop.example /product/731/
             8 *            /browse/
    shop.example /lists/       the operator's own: no count, never aged, never lost
    # 12 shop.example /heavy/  one that the operator has switched off

A path stands there as in a request line: what is no printable ASCII is a percent sign
and two digits. An operator may write it in any way, spaces and letters of UTF-8 too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from cowpreload.candidates import Served
from cowpreload.paths import plain_path

VERSION = 1
_OURS = b"#:"
_FIRST = b"#: cowpreload warm-up file "
_APPLICATION = b"#: application "
_ABOUT = """\
#: What visitors have requested: how often, host (*: any), path. The server renews
#: these lines. A line without a number is yours, and stays: a path, or host and path.
#: A page behind a # is not requested, and not written here again.
"""
# A count, a host, a path; the path alone must be there.
_LINE = re.compile(rb"(?:(\d{1,15})[ \t]+)?(?:([^\s/#]\S*)[ \t]+)?(/.*)", re.DOTALL)
_ANY_HOST = "*"
# Servers take request lines of 4 to 64 KiB; this is one of uWSGI's largest buffers.
_LONGEST = 65536

Page = tuple[str, str]  # host, path


@dataclass(frozen=True)
class Kept:
    """What a warm-up file says.

    Attributes:
        application: whose pages they are; "" is not known.
        learned: pages with a count.
        listed: the operator's own; their count is 0.
        off: host ("": any) and path of what the operator has switched off.
        own: the operator's lines as they are: comments, and those in `bad`, too.
        bad: numbers of lines that name no page, from 1.
        refused: why it is no warm-up file that we may read or replace, or "".
    """

    application: str = ""
    learned: tuple[Served, ...] = ()
    listed: tuple[Served, ...] = ()
    off: frozenset[Page] = frozenset()
    own: tuple[bytes, ...] = ()
    bad: tuple[int, ...] = ()
    refused: str = ""

    @property
    def off_paths(self) -> frozenset[str]:
        """Of any host: a visitor can name another, and the application may not mind."""
        return frozenset(path for _, path in self.off)

    def of_another(self, application: str) -> str:
        """Why it is not this application's, or ""; one that is "" is not known."""
        application = " ".join(application.split())
        if application == "" or self.application in ("", application):
            return ""
        return (
            f"is of the application {self.application}, not {application}; name "
            "another for each, or remove it"
        )


def _page(line: bytes) -> Served | None:
    """The page that a line names; None if it names none."""
    found = _LINE.fullmatch(line)
    if found is None or len(line) > _LONGEST:
        return None
    count, host, path = found.groups()
    named = unquote_to_bytes(host or b"").decode("latin-1")
    if not named.isprintable() or " " in named:
        return None
    return Served(
        plain_path(path), "" if host == b"*" else named, int(count) if count else 0
    )


def _refusal(first: bytes) -> str:
    if not first.startswith(_FIRST):
        return "is no warm-up file; name another, or remove it"
    version = first.removeprefix(_FIRST).strip()
    if version != b"%d" % VERSION:
        shown = version[:20].decode("ascii", "replace")
        return f"is of version {shown}, not {VERSION}; name another, or remove it"
    return ""


def parse(text: bytes) -> Kept:
    """What the text says; an empty one says nothing."""
    # Some editors begin with a mark, and end lines with two characters.
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    lines = [each.strip(b" \t\r") for each in lines]
    if not any(lines):
        return Kept()
    refused = _refusal(lines[0])
    if refused:
        return Kept(refused=refused)
    application = ""
    learned, listed, off, own, bad = [], [], set(), [], []
    for number, line in enumerate(lines, 1):
        if line.startswith(_APPLICATION):
            application = line.removeprefix(_APPLICATION).decode("utf-8", "replace")
        elif line.startswith(b"#"):
            if not line.startswith(_OURS):
                own.append(line)
                page = _page(line.lstrip(b"# \t"))
                if page is not None:
                    off.add((page.host, page.path))
        elif line:
            page = _page(line)
            if page is not None and page.count:
                learned.append(page)
                continue
            own.append(line)
            if page is None:
                bad.append(number)
            else:
                listed.append(page)
    return Kept(
        application,
        tuple(learned),
        tuple(listed),
        frozenset(off),
        tuple(own),
        tuple(bad),
    )


def _host(host: str) -> str:
    return quote(host, safe=":[]", encoding="latin-1", errors="replace")


def compose(application: str, own: Iterable[bytes], pages: Iterable[Served]) -> bytes:
    """The text: the operator's lines, then the pages, those requested most first.

    Args:
        application: in one line.
        own: as they were read.
        pages: with a count; paths are plain.
    """
    name = " ".join(application.split()).encode("utf-8", "replace")
    head = _FIRST + b"%d\n" % VERSION + _APPLICATION + name + b"\n" + _ABOUT.encode()
    ordered = sorted(pages, key=lambda each: (-each.count, each.path, each.host))
    lines = [
        f"{each.count:>8} {_host(each.host) or _ANY_HOST} {each.path}".encode()
        for each in ordered
    ]
    return head + b"".join(each + b"\n" for each in (*own, *lines))
