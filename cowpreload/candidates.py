"""What finding, trial and warm up hand to each other: requests that nobody has listed.

Frozen records, times in seconds, sizes in bytes. Must not import a stage or print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

# In one line: paths, and characters of one.
_SHOWN = 5
_LONGEST = 200
# Why the last of many stay cold. What is listed comes first, and has its own time.
NO_TIME = "no time is left; list what matters"


@dataclass(frozen=True)
class Served:
    """A page as it was noted: one path that was requested, its host, and how often.

    `count` is of all requests for the same page, as far as native/served.c can tell;
    where there are more pages than places, it is an estimate.
    """

    path: str
    host: str
    count: int


@dataclass(frozen=True)
class Shape:
    """What the paths of one page have in common, an example of them, and a count."""

    shape: str
    path: str
    host: str
    count: int


@dataclass(frozen=True)
class Candidate:
    """A request that nobody has listed, to be tried before it warms anything.

    Attributes:
        path: as in a request line, percent-encoded, SCRIPT_NAME included.
        host: of the request; "" is the one of all warm-up requests.
        source: where the path comes from: one of warmed.SOURCES.
        user: whether it is requested as `warmup-user`, and not as anybody.
    """

    path: str
    host: str = ""
    source: str = "route"
    user: bool = False

    @property
    def is_visited(self) -> bool:
        """Whether visitors chose the path: it is requested with nobody's login."""
        return self.source in ("file", "traffic")

    @property
    def shown(self) -> str:
        """The path, and whose request it is where that is not anybody's."""
        return f"{self.path} (as warmup-user)" if self.user else self.path

    @property
    def logged(self) -> str:
        """The same for a log; what visitors have requested is nobody's business."""
        return "a page of warmup-file" if self.source == "file" else self.shown

    @property
    def frame(self) -> str:
        """The name of the function that requests it, for the stack of one that hangs;
        see origins.py."""
        return f"{'visited' if self.is_visited else 'warmup'}={self.path}"


Answered = Callable[[Candidate, int, "BaseException | None"], bool]
"""What was requested, its status (0: none), and what it raised or None; gives whether
to go on."""


@dataclass(frozen=True)
class Found:
    """The candidates of one source, best first, and what is to be said of them.

    Attributes:
        left_out: paths that are never requested, each with the reason.
        note: why there are no others, or "".
    """

    candidates: tuple[Candidate, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Tried:
    """What one candidate did in a trial, or later in the master.

    Attributes:
        status: of its answer; 0 if it gave none.
        seconds: until then.
        private: bytes by which the private memory of the child grew.
        dropped: why it is not to warm the master, or "".
    """

    candidate: Candidate
    status: int = 0
    seconds: float = 0.0
    private: int = 0
    dropped: str = ""

    @property
    def told(self) -> str:
        """`dropped` for a log. What visitors have requested is in the text of an
        exception (`KeyError: '/people/alice'`), and may be in the name of what is open.
        """
        if not self.candidate.is_visited:
            return self.dropped
        if self.dropped.startswith("leaves "):
            return "leaves something open"
        raised = self.dropped.startswith("raised ")
        return self.dropped.partition(":")[0] if raised else self.dropped


def by_page(tried: Iterable[Tried]) -> list[list[Tried]]:
    """The same, by page: one that was requested each way has two."""
    pages: dict[Candidate, list[Tried]] = {}
    for each in tried:
        pages.setdefault(replace(each.candidate, user=False), []).append(each)
    return list(pages.values())


@dataclass(frozen=True)
class AutoReport:
    """What became of the candidates of one application.

    Attributes:
        tried: each with its last word, the master's where it came so far; pages that
            were requested as the user, too, twice.
        left_out: how many were not even tried, by source: `route`, `file`.
        requests: in the master.
        seconds: for all of it.
        note: why there were no more, or "".
    """

    tried: tuple[Tried, ...]
    left_out: Mapping[str, int]
    requests: int
    seconds: float
    note: str = ""

    def warmed(self) -> list[Candidate]:
        """The pages that were, one candidate each."""
        ways = (
            [each for each in page if not each.dropped] for page in by_page(self.tried)
        )
        return [each[0].candidate for each in ways if each]

    def lines(self) -> list[str]:
        """Log lines, without newlines: what was warmed, one for each reason why not,
        then a sum each source.

        A page that was warmed one way is none that was dropped; that it redirects a
        visitor to the login, or the user away from it, is as it should be.
        """
        reasons: dict[str, list[str]] = {}
        unnamed: dict[str, int] = {}
        for ways in by_page(self.tried):
            faults = [each for each in ways if each.dropped]
            said = [each for each in faults if not 300 <= each.status < 500]
            for each in faults[-1:] if len(faults) == len(ways) else said:
                if each.candidate.source == "file":
                    unnamed[each.told] = unnamed.get(each.told, 0) + 1
                else:
                    reasons.setdefault(each.dropped, []).append(each.candidate.shown)
        warm = [each.shown for each in self.warmed() if each.source == "route"]
        lines = [f"cow: warmup path={_some(warm)} warmed"] if warm else []
        lines += [
            f"cow: warmup path={_some(paths)} dropped: {reason}"
            for reason, paths in reasons.items()
        ]
        lines += [
            f"cow: warmup file pages={count} dropped: {reason}"
            for reason, count in unnamed.items()
        ]
        if self.note:
            lines.append(f"cow: warmup=auto: {self.note}")
        for source, name in (("file", "file pages"), ("route", "auto routes")):
            if source in self.left_out:
                lines.append(f"cow: warmup {name}={self._sum(source)}")
        return lines

    def _sum(self, source: str) -> str:
        tried = [each for each in self.tried if each.candidate.source == source]
        pages, left_out = len(by_page(tried)), self.left_out[source]
        warmed = sum(each.source == source for each in self.warmed())
        return (
            f"{pages + left_out} warmed={warmed} dropped={pages - warmed} "
            f"left-out={left_out} seconds={self.seconds:.2f}"
        )


def _some(paths: list[str]) -> str:
    """The first of them; a site's admin may be dozens that redirect."""
    more = len(paths) - _SHOWN
    shown = [
        f"{each[:_LONGEST]}..." if len(each) > _LONGEST else each
        for each in paths[:_SHOWN]
    ]
    return ",".join(shown) + (f" and {more} more" if more > 0 else "")
