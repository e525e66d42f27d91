"""Running servers for a program: what `status --json` prints and `record` writes.

docs/status.md lists every field, with its type and unit; a test compares. A field is
never renamed or given another meaning without raising VERSION; new ones may come.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cowpreload.view import ServerView, SlotView

VERSION = 1


def status_object(views: Sequence[ServerView], at: float) -> dict[str, Any]:
    """All servers at one moment, `at` in seconds since the epoch."""
    return {"version": VERSION, "at": at, "servers": [_server(each) for each in views]}


def status_json(views: Sequence[ServerView], at: float) -> str:
    """The same as a text, indented."""
    return json.dumps(status_object(views, at), indent=2)


def _server(view: ServerView) -> dict[str, Any]:
    counts = asdict(view.counts)
    counts["recycled"], counts["killed"] = map(
        dict, (view.counts.recycled, view.counts.killed)
    )
    master = asdict(view.master)
    master["warmings"] = [
        {**asdict(each), "pages": dict(each.pages)} for each in view.master.warmings
    ]
    return {
        "master": master,
        "slots": [_slot(each) for each in view.slots],
        "counts": counts,
        "totals": asdict(view.totals),
        "note": view.note,
    }


def _slot(slot: SlotView) -> dict[str, Any]:
    made = {"soft": slot.soft, "over": slot.over, "leaving_for": slot.leaving_for}
    return {**asdict(slot), **made}
