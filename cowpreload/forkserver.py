"""What multiprocessing's fork server imports last, to freeze what it has preloaded.

    multiprocessing.set_forkserver_preload(["catalogue", "cowpreload.forkserver"])

Imported there, it does what `cowpreload.freeze()` does: children of that server share
what is preloaded. Imported elsewhere, it does nothing. Nothing that fails here may end
the fork server, which knows ImportError alone: it is said on stderr.

Attributes:
    REPORT: of the freeze, in the fork server and its children; None elsewhere.
"""

from __future__ import annotations

import sys

# As typing's, without importing it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cowpreload.records import FreezeReport

__all__ = ["REPORT"]


def _is_fork_server() -> bool:
    """Whether `multiprocessing.forkserver.main` has asked for this import."""
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name == "multiprocessing.forkserver" and frame.f_code.co_name == "main":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _freeze() -> FreezeReport | None:
    if not _is_fork_server():
        return None
    try:
        from cowpreload.hosts.alone import freeze

        return freeze()
    except Exception as error:  # noqa: BLE001 - whatever it is
        print(f"cow: fork server not frozen: {error!r}", file=sys.stderr)
        return None


REPORT = _freeze()
