"""What a server's log tells: the facts of its `cow:` lines, and its end. Pure."""

from __future__ import annotations

import re
from itertools import groupby

from cowpreload.tryout.records import LogFacts
from cowpreload.units import MIB

_TAIL = 14  # lines: a traceback's last frames and the error itself
_PRELOAD = re.compile(r"cow: preload .*")
_FINDING = re.compile(r"cow: fork-safety (.*)")
_RECYCLED = re.compile(r"cow: worker=\d+ .*\b(recycled|killed)\b")
# What every start says, and an ended server.
_NOISE = re.compile(
    r"\[INFO\]|Worker exiting|Shutting down: Master|Reason: Worker failed|^$"
    r"|^\s*[~^]+$|frozen (importlib|runpy)|importlib/__init__|\*\*\*|^spawned|^mapped"
    r"|^detected"
)


def tail(log: str, lines: int = _TAIL) -> str:
    """The last lines that say something, each said once, indented."""
    said = [line.rstrip() for line in log.splitlines()]
    said = [line for line in said if not _NOISE.search(line)] or said
    said = [line for line, _ in groupby(said)]
    return "\n".join(f"    {line}" for line in said[-lines:])


def facts(log: str) -> LogFacts:
    """Of a cow way's whole log; what it does not say is 0."""
    preloads = _PRELOAD.findall(log)
    told = dict(
        part.split("=", 1) for part in (preloads or [""])[0].split() if "=" in part
    )
    return LogFacts(
        findings=tuple(dict.fromkeys(_FINDING.findall(log))),
        heap=_number(told.get("heap", "")) * MIB,
        immortal=_number(told.get("immortal", "")),
        warmed=_number(told.get("warmup-requests", "")),
        recycled=len(_RECYCLED.findall(log)),
    )


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
