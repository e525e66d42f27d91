"""Whatever a server can log is explained in docs/messages*.md, and nothing else is."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("messages*.md"))


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import messages

    return messages


def explained() -> list[str]:
    """What stands in code in the first column of a table, or in a text."""
    text = "\n".join(page.read_text() for page in PAGES)
    return re.findall(r"`([^`\n]+)`", text)


def test_every_line_of_the_log_is_explained(messages: ModuleType) -> None:
    spans = explained()
    missing = [
        f"{each.where}: {each.text}"
        for each in messages.messages()
        if messages.is_told(each.text) and not any(map(each.is_line, spans))
    ]
    assert not missing, "add to docs/messages*.md:\n" + "\n".join(missing)


def test_no_line_is_explained_that_nobody_logs(messages: ModuleType) -> None:
    """The first column of a table; a value filled in would do, as `…` does."""
    found = messages.messages(commands=True)
    told = [each for each in found if messages.is_told(each.text)]
    stale = [
        span
        for page in PAGES
        for row in re.findall(r"^\| (`.*?) \|", page.read_text(), re.M)
        for span in re.findall(r"`([^`]+)`", row)
        if span not in messages.OTHERS and not any(each.is_line(span) for each in told)
    ]
    assert not stale


def test_what_the_look_at_the_sources_finds(messages: ModuleType) -> None:
    """Strings in parts, in formats of either kind, in C; no docstring."""
    texts = {each.text for each in messages.messages()}
    assert any(
        each.startswith("cow: worker_class={}: nothing was loaded")
        and each.endswith("and without sharing; start the server anew")
        for each in texts
    )
    assert "cow: worker={} gen={} pid={} {} private={}MiB {} age={}s{}" in texts
    assert "is no size; write a number with K, M, G or T, as in 200M" in texts
    assert len(texts) > 150


def test_a_new_line_is_found(messages: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(
        '"""cow: a docstring."""\nlog.error("cow: news=%d: " f"of {what}; look", 1)\n'
    )
    found = messages.in_python(tmp_path / "new.py", "new.py")
    assert [each.text for each in found] == ["cow: news={}: of {}; look"]
    assert sys.version_info >= (3, 10)
