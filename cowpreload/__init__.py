"""Copy-on-write-aware worker lifecycle for gunicorn and uWSGI.

What an application may need: `before_fork(callable)` to close what must not cross the
fork, `after_fork(callable)` to open it anew in each worker, `worker()` to learn which
worker it runs in, `settle()` to hide from the collector what that worker has cached,
`keep_mortal(object)` for what must be freed in a worker, `immortal_too(items)` and
`held_by(class, function)` for what only C code holds; without a server of ours,
`freeze()`. They are loaded when first used: the start-up file of the
package may import this module in every interpreter, which must cost nothing.
"""

from __future__ import annotations

from cowpreload._version import __version__

# As typing's, without importing it: 4 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cowpreload.callbacks import after_fork, before_fork
    from cowpreload.freezing import keep_mortal
    from cowpreload.holders import held_by, immortal_too
    from cowpreload.hosts.alone import freeze
    from cowpreload.settling import settle
    from cowpreload.watch import worker

__all__ = [
    "__version__",
    "after_fork",
    "before_fork",
    "freeze",
    "held_by",
    "immortal_too",
    "keep_mortal",
    "settle",
    "worker",
]

_HOMES = {
    "after_fork": "cowpreload.callbacks",
    "before_fork": "cowpreload.callbacks",
    "freeze": "cowpreload.hosts.alone",
    "held_by": "cowpreload.holders",
    "immortal_too": "cowpreload.holders",
    "keep_mortal": "cowpreload.freezing",
    "settle": "cowpreload.settling",
    "worker": "cowpreload.watch",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
