"""A Diagnosis for a terminal, 80 columns, and as JSON."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict

from cowpreload.diagnosis import Diagnosis, Fact, Part, Status
from cowpreload.units import MIB

WIDTH = 80
VERSION = 1
_NAME = 13


def doctor_text(found: Diagnosis) -> str:
    """One page: a line a fact, the advice, and how many facts are not good."""
    lines = [line for part in found.parts for line in _part(part)]
    if found.advice:
        lines.append("advice, by what it saves a worker at most (not to be added up)")
        for each in found.advice:
            size = f"{each.bytes / MIB:>8.1f} MiB  "
            lines += _wrapped(size, each.text)
        lines.append("")
    if found.printed:
        lines.append("the application's own words")
        lines += [f"  {line}" for line in found.printed]
        lines.append("")
    count = {
        status: sum(
            fact.status is status for part in found.parts for fact in part.facts
        )
        for status in Status
    }
    lines.append(", ".join(f"{count[each]} {each.value}" for each in Status))
    return "\n".join(lines)


def _part(part: Part) -> list[str]:
    lines = [part.title]
    for fact in part.facts:
        lines += _wrapped(_head(fact), fact.text)
    return [*lines, ""]


def _head(fact: Fact) -> str:
    return f"  {fact.status.value:<5} {fact.name:<{_NAME}} "


def _wrapped(head: str, text: str) -> list[str]:
    """A path or a place in code is not broken: who copies it needs it whole."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def doctor_json(found: Diagnosis) -> str:
    """All of it, sizes in bytes; docs/doctor.md has the keys."""
    figures = {
        "version": VERSION,
        "bad": found.is_bad,
        "parts": [
            {
                "title": part.title,
                "facts": [
                    {"status": each.status.value, "name": each.name, "text": each.text}
                    for each in part.facts
                ],
            }
            for part in found.parts
        ],
        "advice": [asdict(each) for each in found.advice],
        "printed": list(found.printed),
    }
    return json.dumps(figures, indent=1)
