"""Write the generated parts of docs/ and README.md; with --check, fail if they differ.

A generated part stands between `<!-- NAME -->` and `<!-- /NAME -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from cowpreload.bench.tables import markdown
from cowpreload.bench.tables import steps as steps_table
from cowpreload.cli.settings import table

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"


def demo_table(version: str) -> str:
    """The demo's table out of its JSON, for one interpreter."""
    return markdown(json.loads((FIGURES / f"demo-{version}.json").read_text()))


def ablation_table() -> str:
    """The steps to an immortal heap, for each interpreter that was measured."""
    found = (json.loads(path.read_text()) for path in FIGURES.glob("ablation-*.json"))
    return steps_table(sorted(found, key=lambda each: version_key(each["python"])))


def version_key(version: str) -> tuple[int, ...]:
    """3.9 before 3.10; what follows the number (`rc1`) does not count."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "settings": ("docs/settings.md", table),
    "demo-3.13": ("README.md", lambda: demo_table("3.13")),
    "ablation": ("docs/immortality.md", ablation_table),
    "demo-3.11": ("README.md", lambda: demo_table("3.11")),
}


def render(text: str, name: str, part: str) -> str:
    """`text` with the generated part `name` renewed."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"docs: no part named {name}")
    return pattern.sub(lambda match: f"{match[1]}{part}\n{match[2]}", text)


def main() -> int:
    """Write or check every part."""
    code = 0
    for name, (file, make) in PARTS.items():
        path = ROOT / file
        text = path.read_text()
        renewed = render(text, name, make())
        if renewed == text:
            continue
        if "--check" in sys.argv:
            print(f"docs: {file}: part {name} is old; run: make docs", file=sys.stderr)
            code = 1
        else:
            path.write_text(renewed)
    return code


if __name__ == "__main__":
    sys.exit(main())
