"""No server of ours: the stages for those who fork by themselves.

Takes the process as it is; gives a FreezeReport. For multiprocessing, Celery, a master
of one's own: `cowpreload.freeze`.
"""

from __future__ import annotations

import os
from dataclasses import replace

from cowpreload import _core, freezing, mending
from cowpreload.hosts.laying import Laying
from cowpreload.immortal import WHY_NOT, plan
from cowpreload.records import FreezeReport, SealReport
from cowpreload.sealing import seal as fill_holes
from cowpreload.settings_given import read

# Filling is for good, and what comes and goes leaves new holes each time: 8 MB a call
# were kept of a busy heap, in a master that froze before each of its forks.
_FILLED = "filled by the first call in this process; call freeze() once"
_filled_by = 0


def _seal(fill: bool) -> SealReport:
    global _filled_by
    if not fill or _filled_by != os.getpid():
        _filled_by = os.getpid() if fill else _filled_by
        return fill_holes(fill)
    return replace(fill_holes(fill=False), unsealed=(_FILLED,))


def freeze(
    immortal: str = "auto", seal: str = "on", hot_code: str = "on"
) -> FreezeReport:
    """Collect, make immortal, freeze and seal everything that this process has loaded.

    Call it once, after everything is loaded and before the first fork, on the main
    thread of the main interpreter. Preloaded objects are never freed afterwards, so
    children should leave by `os._exit`, as multiprocessing's do. A second call in a
    process freezes what has come since, and fills no holes: that memory would be kept
    again at each call.

    Args:
        immortal: auto (where the interpreter can), on, or off (collect and freeze).
        seal: on, or off: children then allocate between inherited objects.
        hot_code: on, or off: code that has run stays where it is, between cold code.

    Returns:
        What was frozen; `why_mortal` says why nothing became immortal under auto.

    Raises:
        SettingsError: a value is not known, or `immortal` is on where nothing can be.
    """
    given = {"immortal": immortal, "seal": seal, "hot_code": hot_code}
    settings = read(given, environ={}, immortal_why_not=WHY_NOT)
    walk, why_mortal = plan(settings)
    freezing.thaw()
    mending.prepare()  # os.fork() mends
    laying = Laying(settings, lambda: None)
    first = _filled_by != os.getpid()
    report = freezing.freeze(walk, laying.look) if first else freezing.freeze(walk)
    sealed = _seal(settings.seal == "on")
    return replace(
        report,
        why_mortal=why_mortal,
        sealed=sealed.after(laying.filled),
        bytes=_core.heap_size(),
        hot=laying.report,
    )
