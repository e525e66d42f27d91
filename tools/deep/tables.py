"""What is said at the end: a table for the reader, a JSON file for the docs.

Takes the judged results of one interpreter; gives text and a document.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from deep.compare import Difference, failures


@dataclass
class Result:
    """A suite on one interpreter."""

    suite: str
    jobs: int = 0
    plain: dict[str, str] = field(default_factory=dict)
    frozen: dict[str, str] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    plain_troubles: list[str] = field(default_factory=list)
    objects: int = 0  # frozen before the fork, in the largest of the jobs

    def of(self, kind: str) -> list[Difference]:
        return [one for one in self.differences if one.kind == kind]

    @property
    def good(self) -> bool:
        return not self.of("new") and not self.troubles


HEAD = (
    "suite", "jobs", "tests", "skipped", "failed, plain", "failed, frozen",
    "flaky", "explained", "new",
)  # fmt: skip


def row(result: Result) -> list[str]:
    skipped = sum(outcome == "skip" for outcome in result.plain.values())
    figures = [
        result.jobs,
        len(result.plain) - skipped,
        skipped,
        failures(result.plain),
        failures(result.frozen),
        *(len(result.of(kind)) for kind in ("flaky", "explained", "new")),
    ]
    return [result.suite, *map(str, figures)]


def table(version: str, results: list[Result]) -> str:
    rows = [list(HEAD), *(row(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = [f"CPython {version}"]
    for one in rows:
        cells = [cell.rjust(width) for cell, width in zip(one, widths, strict=True)]
        text.append("  ".join([one[0].ljust(widths[0]), *cells[1:]]))
    for result in results:
        for one in result.differences:
            text += [f"{one.kind}: {one.test}: {one.plain} -> {one.frozen}"]
            text += [f"    {one.reason}"] if one.reason else []
            if one.kind == "new":
                shown = result.texts.get(one.test, "").strip()
                text += [f"    {line}" for line in shown.splitlines()[-12:]]
        text += [f"plain: {line}" for line in result.plain_troubles]
        text += [f"frozen: {line}" for line in result.troubles]
    return "\n".join(text)


def document(version: str, full: str, results: list[Result]) -> dict[str, Any]:
    """What docs may quote; names as in the table."""
    suites = {}
    for result in results:
        figures = dict(zip(HEAD[1:], map(int, row(result)[1:]), strict=True))
        listed = [asdict(one) for one in result.differences]
        troubles = {"plain": result.plain_troubles, "frozen": result.troubles}
        suites[result.suite] = {
            "figures": figures,
            "frozen objects": result.objects,
            "differences": listed,
            "troubles": troubles,
        }
    return {"version": version, "python": full, "suites": suites}
