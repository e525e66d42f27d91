"""What cow-warmup=auto knows: of a running server, or of an application without one.

Of a server, the pages that were learned from its traffic. An application is loaded, its
routes are found and tried in a forked child, as a server would at its start; nothing is
requested but in that child, and COW_WARMUP_* variables act.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, replace

from cowpreload.application import load
from cowpreload.audit import descriptors
from cowpreload.candidates import Found, Tried, by_page
from cowpreload.cli.learned import show_learned
from cowpreload.errors import NotFoundError, said
from cowpreload.hosts.auto import Automatic
from cowpreload.hosts.forks import FORKS
from cowpreload.hosts.keeping import Keeping
from cowpreload.hosts.signing_in import SECONDS, signed_in_after_trial
from cowpreload.interface import name_as_given
from cowpreload.kinds import AUTO
from cowpreload.settings import Settings
from cowpreload.settings_given import read
from cowpreload.units import format_size
from cowpreload.warmup_visits import Manner

HELP = "list the pages that cow-warmup=auto knows of a server or an application"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The server or the application, and how to show what it did."""
    parser.add_argument(
        "app",
        nargs="?",
        default="",
        help="a server's PID (default: the only server); or module, module:name or "
        "module:factory(), as gunicorn takes it",
    )
    parser.add_argument(
        "--file",
        metavar="FILE",
        default=None,
        help="a warm-up file of the application, to try its pages, too",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="every page, for programs")
    form.add_argument(
        "--write",
        metavar="FILE",
        default="",
        help="what a server has learned: as the setting, if it ends in .ini for uWSGI, "
        "in .py for gunicorn; else as a warm-up file",
    )


def _as_json(found: Found, tried: list[Tried], note: str, seconds: float) -> str:
    return json.dumps(
        {
            "version": 1,
            "seconds": round(seconds, 3),
            "note": note,
            "routes": [
                {
                    **asdict(each.candidate),
                    "status": each.status,
                    "seconds": round(each.seconds, 4),
                    "private": each.private,
                    "dropped": each.dropped,
                }
                for each in tried
            ],
            "left_out": [
                {"path": path, "reason": reason} for path, reason in found.left_out
            ],
        },
        indent=2,
    )


def _as_text(found: Found, tried: list[Tried], note: str, seconds: float) -> str:
    lines = []
    for each in tried:
        lines.append(
            f"{each.status or '-':>6}{each.seconds * 1000:8.0f} ms"
            f"{format_size(each.private // 1024 * 1024):>10}  {each.candidate.shown}"
            f"{f'  dropped: {each.dropped}' if each.dropped else ''}"
        )
    if lines:
        lines.insert(0, f"{'status':>6}{'time':>11}{'private':>10}  path")
    lines += [f"left out: {path}: {reason}" for path, reason in found.left_out]
    if note:
        lines.append(note)
    pages = by_page(tried)
    warmed = sum(any(not each.dropped for each in ways) for ways in pages)
    lines.append(
        f"{warmed} of {len(pages)} would be warmed, "
        f"{len(found.left_out)} were left out; {seconds:.1f} s"
    )
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    """Load, find, try, show; 1 if nothing would be warmed."""
    if not arguments.app or arguments.app[0] in ":0123456789":
        if arguments.file is not None:
            raise NotFoundError(
                f"file={arguments.file}: is tried with an application, not a server; "
                "name the application, or --write"
            )
        return show_learned(arguments.app, as_json=arguments.json, file=arguments.write)
    if arguments.write:
        raise NotFoundError(f"app={arguments.app}: --write needs a server's pid")
    before = descriptors()
    app = load(arguments.app)
    settings = read({"warmup_file": arguments.file})
    settings = replace(settings, warmup=(*settings.warmup_listed, AUTO))
    prefix = os.environ.get("SCRIPT_NAME", "").rstrip("/")
    began = time.monotonic()
    manner = Manner.of(app, settings, prefix)
    kept = _kept(arguments.app, settings, prefix)
    try:
        within = min(settings.warmup_timeout, SECONDS)
        user = signed_in_after_trial(settings.warmup_user, _say, within, FORKS)
        with user as cookie:
            manner = replace(manner, cookie=cookie)
            automatic = Automatic(app, settings, manner, before, FORKS, _say, kept=kept)
            found = automatic.candidates()
            tried, note = (
                automatic.trial(found.candidates) if found.candidates else ([], "")
            )
    except Exception as error:
        raise NotFoundError(f"app={arguments.app}: {said(error)}") from error
    show = _as_json if arguments.json else _as_text
    print(show(found, tried, note or found.note, time.monotonic() - began))
    return 0 if any(not each.dropped for each in tried) else 1


def _kept(app: str, settings: Settings, prefix: str) -> Found | None:
    """The pages of the application's warm-up file, if there is one."""
    if settings.warmup_file is None:
        return None
    name, interval = name_as_given(app), settings.check_interval
    skip = settings.warmup_skip
    keeping = Keeping(settings.warmup_file, name, _say, interval, skip, prefix)
    return keeping.found()


def _say(line: str) -> None:
    print(line, file=sys.stderr)
