"""gunicorn's master and its warm-up file: which one it is, and when it is written.

Takes the settings, gunicorn's application and log; keeping.py does the rest, on either
host. One object for the process. Must not raise.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from cowpreload import about
from cowpreload.about import About
from cowpreload.board import Board
from cowpreload.hosts.gunicorn_interface import script_name
from cowpreload.hosts.gunicorn_log import Unfailing
from cowpreload.hosts.unasked import unasked
from cowpreload.interface import name_as_given, name_of
from cowpreload.settings import Settings

if TYPE_CHECKING:
    from cowpreload.hosts.keeping import Keeping


class Keeper:
    """The file of this server; of a reload's settings, if they name another."""

    def __init__(self) -> None:
        self._keeping: Keeping | None = None
        self._file: str | None = None
        self._app: Any = None
        self._log: Any = None

    def begin(self, settings: Settings, app: Any, log: Any) -> Keeping | None:
        """Before the application is loaded, which may change the directory."""
        self._app, self._log = app, Unfailing(log)
        self._use(settings)
        return self._keeping

    def _use(self, settings: Settings) -> None:
        self._file = settings.warmup_file
        self._keeping = None
        if self._file is None:
            return
        with unasked("warm-up file", self._raised):
            from cowpreload.hosts.keeping import Keeping  # it imports what few need

            self._keeping = Keeping(
                self._file,
                self._name(),
                self._log.warning,
                settings.check_interval,
                settings.warmup_skip,
                self._prefix(),
                uid=self._app.cfg.uid,
            )

    def _raised(self, line: str) -> None:
        if self._log is not None:  # of a server that came too late it is
            self._log.exception(line)

    def _name(self) -> str:
        given = getattr(self._app, "app_uri", None)
        return name_as_given(given) if given else name_of(type(self._app))

    def _prefix(self) -> str:
        cfg = getattr(self._app, "cfg", None)
        return script_name(cfg.worker_class) if cfg is not None else ""

    def tell(self, settings: Settings, board: Board) -> None:
        """The command line writes such a file, too."""
        with unasked("what the command line is told", self._raised):
            about.write(
                board, About(self._name(), self._prefix(), settings.warmup_skip)
            )

    def off(self) -> Collection[str]:
        """The paths that the file switches off, as it is now."""
        return self._keeping.off() if self._keeping is not None else ()

    def turn(self, board: Board | None) -> None:
        """At a turn of the master."""
        if self._keeping is not None and board is not None:
            self._keeping.turn(board)

    def reload(self, settings: Settings, board: Board | None) -> None:
        """A reload has read these."""
        with unasked("warm-up file", self._raised):
            self.end(board)
        if self._app is not None and settings.warmup_file != self._file:
            self._use(settings)
        elif self._keeping is not None:
            self._keeping.skip = settings.warmup_skip

    def end(self, board: Board | None) -> None:
        """The last of the master, or of its settings."""
        if self._keeping is not None and board is not None:
            self._keeping.end(board)


KEEPER = Keeper()
