"""The figures of `cowpreload try` for programs; docs/try.md names all of them. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict

from cowpreload.tryout.advice import configuration, fits, one_more, verdicts
from cowpreload.tryout.records import Figures, Measured, Tried

VERSION = 1


def as_json(tried: Tried) -> str:
    """Sizes in bytes, times in seconds unless named otherwise."""
    plan = tried.plan
    figures: Figures = {
        "version": VERSION,
        "app": plan.app,
        "interface": plan.interface,
        "versions": dict(tried.versions),
        "workers": plan.workers,
        "requests": plan.requests,
        "seconds": tried.seconds,
        "paths": [
            {"path": path, "status": status, "found": path in plan.found}
            for path, status in tried.statuses
        ],
        "uncompared": list(tried.uncompared),
        "room": asdict(tried.room),
        "modes": [_mode(tried, each) for each in tried.ways],
        "verdicts": [
            {
                "helps": each.helps,
                "before": each.before,
                "after": each.after,
                "text": each.text,
                "reasons": list(each.reasons),
            }
            for each in verdicts(tried)
        ],
        "limits": [asdict(each) for each in tried.limited],
        "configuration": configuration(tried),
        "notes": list(tried.notes),
    }
    return json.dumps(figures, indent=1)


def _mode(tried: Tried, each: Measured) -> Figures:
    return {
        "mode": each.way.name,
        "host": each.way.host,
        "cow": each.way.cow,
        "preload": each.way.preload,
        "lives": [asdict(life) for life in each.lives],
        "one_more": one_more(each),
        "fits": fits(each, tried.room.size),
        "cpu_ratio": each.cpu,
        "cpu_ms": each.cpu_ms,
        "differences": [asdict(found) for found in each.differences],
        "findings": list(each.log.findings),
        "inherited": each.log.heap,
        "immortal_objects": each.log.immortal,
        "warmup_requests": each.log.warmed,
        "why": None
        if each.why is None
        else {
            "private": each.why.private,
            "causes": dict(each.why.causes),
            "advice": list(each.why.advice),
        },
        "error": each.error,
    }
