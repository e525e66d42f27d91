"""The result of a scenario: one JSON file, whole after each mode.

Takes plain figures; gives a file that is always complete JSON: it is written beside
and put in place by one rename, so that an interrupted run leaves what it had.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from cowpreload.bench.machine import machine, versions
from cowpreload.bench.stats import Figures


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def text(figures: Figures) -> str:
    """The JSON of `figures`: a line a member, but a list of numbers on one."""
    lines = json.dumps(figures, indent=1) + "\n"
    # No text holds a line break: JSON escapes it.
    numbers = re.compile(r"\[\n([^\[\]{}\"]*)\]")
    return numbers.sub(lambda found: f"[{' '.join(found[1].split())}]", lines)


class Journal:
    """One scenario's figures, on disk after each change.

    Attributes:
        figures: scenario, size, complete, machine, versions, method, notes, and what
            the scenario puts there.
    """

    def __init__(self, path: Path, scenario: str, size: str, method: Figures) -> None:
        self.path = path
        self._began = time.monotonic()
        self.figures: Figures = {
            "scenario": scenario,
            "size": size,
            "complete": False,
            "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "seconds": 0,
            "machine": machine(),
            "versions": versions(),
            "method": method,
            "notes": [],
        }
        self.write()

    def write(self) -> None:
        """Put the figures on disk, all of them or none."""
        self.figures["seconds"] = round(time.monotonic() - self._began)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            beside.write_text(text(self.figures))
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    def put(self, *keys: str, value: object) -> None:
        """Set `figures[key][key]...` and write."""
        place = self.figures
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = value
        self.write()

    def note(self, text: str) -> None:
        """Say it, and keep it: what was left out, and why."""
        say(text)
        if text not in self.figures["notes"]:
            self.figures["notes"].append(text)
        self.write()

    def complete(self) -> None:
        """Every mode has been measured."""
        self.figures["complete"] = True
        self.write()
