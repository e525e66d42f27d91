"""What a server that serves could save by another setting. Pure.

Takes the settings, what all workers have grown by, and what of their requests was noted
or not; gives one log line, or "" where nothing is worth it. Nothing is measured twice:
by how much it would be, only a warm up can tell.
"""

from __future__ import annotations

from cowpreload.settings import Settings
from cowpreload.units import MIB

# In check intervals: what a worker makes at its first requests is made by then.
AFTER_TURNS = 60
# Of fewer requests, a share says nothing.
_LEAST = 50
# Where a tenth of the requests carries a login, its pages are a part of the traffic.
_SHARE = 0.1


def hint(
    settings: Settings,
    grown: int,
    noted: int = 0,
    withheld: int = 0,
    *,
    warms_anew: bool = True,
) -> str:
    """One line without a newline, or "".

    Args:
        settings: of the server.
        grown: bytes, of all workers, since they were ready.
        noted, withheld: requests, as served.py counts them.
        warms_anew: whether the running master warms what it learns; else only a file
            gives it to a start.
    """
    if grown < settings.warmup_worth:
        return ""
    if not settings.warmup and not settings.learns:
        return (
            f"cow: warmup=unset: the workers have grown by {grown // MIB}MiB since "
            "they were ready; cow-warmup=auto would save a part of it"
        )
    seen = noted + withheld
    if seen < _LEAST or withheld < seen * _SHARE:
        return ""
    do = "cow-warmup-private=on"
    if not warms_anew and settings.warmup_file is None:
        do += " and cow-warmup-file"
    if not settings.warmup_user:
        do += " with cow-warmup-user (Django), or paths with cow-warmup-header,"
    return (
        f"cow: warmup-private=off: {withheld} of {seen} requests carried a login, and "
        f"nothing was learned from them; the workers have grown by {grown // MIB}MiB "
        f"since they were ready: {do} would save a part of it"
    )
