"""What uWSGI's main interpreter knows before the warm up, for those of applications.

Interpreters share no object: it goes to each of them as a text, by plugin/stage.c. Must
not import the native core.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from cowpreload.audit import Descriptors
from cowpreload.candidates import Candidate, Found


@dataclass(frozen=True)
class Known:
    """Of this process and its settings.

    Attributes:
        before: descriptors() of a moment before the applications were loaded.
        kept: what the warm-up file has, where there is one.
    """

    before: Descriptors
    kept: Found | None = None

    def text(self) -> str:
        """For another interpreter."""
        kept = None if self.kept is None else asdict(self.kept)
        return json.dumps({"before": sorted(self.before), "kept": kept})

    @classmethod
    def of(cls, text: str) -> Known:
        """From there."""
        told = json.loads(text)
        before = frozenset((fd, device, inode) for fd, device, inode in told["before"])
        kept = told["kept"]
        if kept is not None:
            kept = Found(
                tuple(Candidate(**each) for each in kept["candidates"]),
                tuple((path, reason) for path, reason in kept["left_out"]),
                kept["note"],
            )
        return cls(before, kept)
