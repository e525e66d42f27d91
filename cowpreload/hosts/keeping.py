"""`cow-warmup-file`: what was learned from traffic outlasts the server, on either host.

Takes the board at the master's turns, and writes the file; gives, at the next start,
its pages as candidates for the trial. What is in the file is read anew before each
writing and added to: several servers may share it, and an operator may edit it at any
time. Whatever fails is said once and ends nothing. Master only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from cowpreload import served
from cowpreload.board import Board
from cowpreload.candidates import Candidate, Found, Served, Shape
from cowpreload.errors import said
from cowpreload.hosts.serving import as_another
from cowpreload.paths import in_full
from cowpreload.routes import MOST, why_not_again
from cowpreload.shapes import merged, shapes
from cowpreload.warmup_file import load, store
from cowpreload.warmup_lines import Kept, Page, compose, parse

# Written first after so many turns of a master, then at twice that age and so on, at
# least this often; and only if there are other pages than before. At its end, always.
_FIRST_TURNS, _MOST_TURNS = 60, 900
# When the counts add up to more, all are halved: what nobody requests any more is
# forgotten after some ten thousand requests.
_MEMORY = 20_000


class Keeping:
    """The warm-up file of one server, and what of the board is in it."""

    def __init__(
        self,
        path: str,
        application: str,
        say: Callable[[str], object],
        interval: float,
        skip: Sequence[str] = (),
        prefix: str = "",
        mounts: Sequence[str] = (),
        uid: int | None = None,
    ) -> None:
        """Look at nothing yet.

        Args:
            path: of the file; a relative one begins where the process is now.
            application: its name, as the host was given it.
            say: logs a line; must not raise.
            interval: seconds that a turn is.
            skip: paths that are left out, with all below them.
            prefix: SCRIPT_NAME, where the paths on the board do not have it.
            mounts: where applications are, of paths that have it.
            uid: of the workers; None: that of this process.
        """
        self.skip = skip
        self._path = os.path.abspath(path)
        self._application = " ".join(application.split())
        self._prefix = prefix
        self.mounts = mounts
        self.uid = os.geteuid() if uid is None else uid
        self._say = say
        self._said: set[str] = set()
        self._written: dict[Page, int] = {}  # counts of the board that are in the file
        self._noted = 0
        self._interval = interval
        self._began = time.monotonic()
        self._turn_at: float = _FIRST_TURNS

    # ---- reading -----------------------------------------------------------

    def found(self) -> Found:
        """The pages of the file, for a start: the operator's own, then by count.

        Never raises.
        """
        try:
            return self._found()
        except Exception as error:
            self._tell(f"raised {said(error)}; it warms nothing")
            return Found()

    def _found(self) -> Found:
        kept = self._kept()
        if kept is None:
            return Found()
        off = kept.off_paths
        on: list[Served | Shape] = [e for e in kept.listed if shapes([e], off=off)]
        on += shapes(kept.learned, off=off)
        wanted = {(each.host, each.path) for each in on}
        pages: list[Served | Shape] = [*kept.listed, *shapes(kept.learned)]
        candidates, left_out = [], {}
        for each in pages:
            reason = self._why_not(each.path)
            if not reason and (each.host, each.path) not in wanted:
                reason = "is switched off in the file"
            if not reason and each.count:
                reason = as_another(self.uid)
                self._tell_of_another(reason)
            if reason:
                left_out[each.path] = reason
            else:
                candidates.append(Candidate(each.path, each.host, "file"))
        found = tuple(dict.fromkeys(candidates))[:MOST]
        return Found(found, tuple(left_out.items()))

    def _tell_of_another(self, reason: str) -> None:
        if reason:
            self._tell(
                f"what visitors have requested stays cold: {reason}; remove the number "
                "before a page to make it yours, or run both as one user"
            )

    def _kept(self) -> Kept | None:
        """What the file says; None if it is not to be touched, which is said."""
        loaded = load(self._path)
        kept = parse(loaded.text)
        fault = loaded.fault or kept.refused or kept.of_another(self._application)
        if fault:
            self._tell(fault)
            return None
        if kept.bad:
            lines = ", ".join(map(str, kept.bad[:5]))
            more = " and more" if len(kept.bad) > 5 else ""
            self._tell(f"line {lines}{more}: names no page; write a path, from its /")
        return kept

    def off(self) -> Collection[str]:
        """The paths that the file switches off, as it is now; never raises."""
        try:
            kept = self._kept()
        except Exception as error:
            self._tell(f"raised {said(error)}; nothing is known to be switched off")
            return ()
        return kept.off_paths if kept is not None else ()

    def _why_not(self, path: str) -> str:
        """Why a page is neither requested nor written, switched off or not; or ""."""
        plain = path.partition("?")[0]
        above = self._above(plain)
        return why_not_again(plain.removeprefix(above), self.skip, above)

    def _above(self, path: str) -> str:
        """The part of a path that is no application's: it says nothing of the page."""
        if self._prefix:
            return self._prefix
        above = (m for m in self.mounts if f"{path}/".startswith(f"{m.rstrip('/')}/"))
        return max(above, key=len, default="")

    # ---- writing -----------------------------------------------------------

    def turn(self, board: Board) -> None:
        """Write if it is time, and other pages are known; never raises."""
        turns = (time.monotonic() - self._began) / self._interval
        if turns >= self._turn_at:
            self._turn_at = turns + min(max(turns, _FIRST_TURNS), _MOST_TURNS)
            self._try(board, if_other_pages=True)

    def end(self, board: Board) -> None:
        """Write what is new: the server ends, or is loaded anew; never raises."""
        self._try(board, if_other_pages=False)

    def _try(self, board: Board, *, if_other_pages: bool) -> None:
        try:
            self._write(board, if_other_pages)
        except Exception as error:
            self._tell(f"raised {said(error)}; what was learned is not kept")

    def _write(self, board: Board, if_other_pages: bool) -> None:
        """Add to the file what was noted since it was last written."""
        noted = served.noted(board)
        if noted == self._noted:
            return
        kept = self._kept()
        if kept is None:
            return
        counts = {
            (each.host, in_full(self._prefix, each.path)): each.count
            for each in served.read(board)
        }
        new = [
            Served(path, host, self._since(host, path, count))
            for (host, path), count in counts.items()
            if not self._why_not(path)
        ]
        old = [each for each in kept.learned if not self._why_not(each.path)]
        pages = _remembered(merged(old, new, kept.off_paths))
        before = {(each.host, each.path) for each in kept.learned}
        if {(each.host, each.path) for each in pages} == before and (
            if_other_pages or not pages
        ):
            return
        fault = store(self._path, compose(self._application, kept.own, pages))
        if fault:
            self._tell(f"{fault}; what was learned is not kept")
            return
        self._noted, self._written = noted, counts

    def _since(self, host: str, path: str, count: int) -> int:
        """What of a count is not in the file; the page may have left the board, and
        come again."""
        written = self._written.get((host, path), 0)
        return count - written if count >= written else count

    def _tell(self, fault: str) -> None:
        if fault not in self._said:
            self._said.add(fault)
            self._say(f"cow: warmup-file={self._path}: {fault}")


def _remembered(pages: Iterable[Shape]) -> list[Served]:
    """Those that the file has room for, with counts that let new ones come up."""
    kept = [Served(each.path, each.host, each.count) for each in pages]
    while sum(each.count for each in kept) > _MEMORY:
        kept = [replace(each, count=each.count // 2) for each in kept]
    return [each for each in kept if each.count > 0][:MOST]
