"""docs/security.md claims nothing without a test."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "security.md"


def there() -> set[str]:
    sources = [*TESTS.rglob("test_*.py")]
    text = "\n".join(each.read_text() for each in sources)
    core = "\n".join(each.read_text() for each in TESTS.glob("native/*.c"))
    plain = re.findall(r"^TEST\((\w+)\)", core, re.MULTILINE)
    names = re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)
    return {*names, *(f"test_{each}" for each in plain)}


def test_every_claim_about_security_names_tests_that_exist() -> None:
    known, claims = there(), 0
    for line in PAGE.read_text().splitlines():
        if not line.startswith("| ") or line.startswith(("| claim", "| file", "| ---")):
            continue
        named = re.findall(r"`(test_\w+)`", line.rsplit("|", 2)[1])
        assert named, f"no test: {line}"
        assert set(named) <= known, set(named) - known
        claims += 1
    assert claims > 20
