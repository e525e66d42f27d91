"""Verdicts on readings that were recorded from real workers.

Each file of `recorded/` is what `cowpreload status` saw of one worker, a reading a
second since it became ready. Both hosts judge by the one function that is driven here.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cowpreload import _core
from cowpreload.plugin_build import sources
from cowpreload.records import Action, History, Limits, Reading

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_worker_is_judged_as_it_was(path: Path) -> None:
    recorded = json.loads(path.read_text())
    limits = Limits(**recorded["limits"])
    private = recorded["private"]
    history = History(ready_at=1000.0, ready_private=private[0])
    judged = []
    for second, size in enumerate(private):
        verdict = _core.judge(limits, history, Reading(size, 0, 0, 0), 1000.0 + second)
        history = replace(
            history, strikes=verdict.strikes, over_since=verdict.over_since
        )
        judged.append((verdict.action, verdict.reason))
    first = next(
        (i for i, (action, _) in enumerate(judged) if action is not Action.KEEP), None
    )
    assert first == recorded["acts_at"]
    if first is not None:
        assert [judged[first][0].value, judged[first][1]] == recorded["verdict"]


def test_the_plugin_has_no_policy_of_its_own() -> None:
    """Else uWSGI could judge otherwise than gunicorn."""
    words = ("private", "strikes", "min_lifetime", "growth")
    for path in sources().glob("*.c"):
        code = subprocess.run(
            ["cc", "-fpreprocessed", "-dD", "-E", "-P", str(path)],
            capture_output=True,
            text=True,
        ).stdout  # without comments
        # What is shown of a slot is read by its offset, and judges nothing.
        code = re.sub(r'"[^"]*"|offsetof\([^)]*\)', "", code)
        assert not [word for word in words if word in code], path.name
