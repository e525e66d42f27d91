"""The site of the documents, and whether their links lead anywhere.

Takes README.md, docs/ and the texts of PAGES; gives the pages of mkdocs in
build/site-pages, with links between them, and `build()` the site in build/site. Whether
links and anchors are right is known without mkdocs: `broken()`. Texts keep their places
and their links in the checkout; only the copies are changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/README.md": "tests.md",
    "examples/django_app/README.md": "example.md",
}
"""Texts outside docs/, by their names in the site; those of docs/ keep theirs."""

LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
_CODE = re.compile(r"^(```|~~~).*?^\1|^(?: {4}|\t).*?$|`[^`\n]+`", re.M | re.S)


def sources(root: Path = ROOT) -> dict[Path, str]:
    """Every text, and its name in the site."""
    found = {root / path: name for path, name in PAGES.items()}
    return found | {path: path.name for path in sorted((root / "docs").glob("*.md"))}


def slug(heading: str) -> str:
    """The anchor of a heading, as mkdocs and GitHub make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w -]", "", text).strip().lower().replace(" ", "-")


def anchors(text: str) -> set[str]:
    """The anchors of a text's headings."""
    bare = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    return {slug(found) for found in re.findall(r"^#+ (.*)$", bare, re.M)}


def links(text: str) -> Iterator[re.Match[str]]:
    """The links of a text, without what stands in code."""
    return LINK.finditer(_CODE.sub(lambda found: " " * len(found[0]), text))


def is_foreign(target: str) -> bool:
    return "://" in target or target.startswith("mailto:")


def broken(root: Path = ROOT) -> list[str]:
    """A line for each link of a text that leads nowhere."""
    lines = []
    for path in sources(root):
        for found in links(path.read_text()):
            file, _, anchor = found[2].partition("#")
            if is_foreign(found[2]):
                continue
            target = (path.parent / file).resolve() if file else path
            where = f"{path.relative_to(root)}: {found[2]}"
            if not target.exists():
                lines.append(f"{where}: no such file")
            elif anchor and anchor not in anchors(target.read_text()):
                lines.append(f"{where}: no such heading")
    return lines


def _relinked(path: Path, text: str, root: Path) -> str:
    """Links of a copy: to pages of the site; what is not one becomes its name."""
    names = {source.resolve(): name for source, name in sources(root).items()}

    def other(found: re.Match[str]) -> str:
        shown, link = found[1], found[2]
        file, mark, anchor = link.partition("#")
        if is_foreign(link) or not file:
            return found[0]
        target = (path.parent / file).resolve()
        if target in names:
            return f"{shown}({names[target]}{mark}{anchor})"
        if shown.startswith("!"):
            return f"{shown}({os.path.relpath(target, root / 'docs')})"
        return f"{shown[1:-1]} (`{os.path.relpath(target, root)}`)"

    return LINK.sub(other, text)


def write_pages(folder: Path, root: Path = ROOT) -> None:
    """The pages that mkdocs reads, and their pictures."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, name in sources(root).items():
        (folder / name).write_text(_relinked(path, path.read_text(), root))
    shutil.copytree(
        root / "docs" / "figures",
        folder / "figures",
        ignore=shutil.ignore_patterns("*.json"),
    )


def build(root: Path = ROOT) -> int:
    """Write the site; mkdocs' exit code, above zero for any broken link."""
    write_pages(root / "build" / "site-pages", root)
    # It talks of its future on every start.
    environ = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict"]
    return subprocess.run(command, cwd=root, env=environ).returncode


if __name__ == "__main__":
    for line in (found := broken()):
        print(line, file=sys.stderr)
    sys.exit(1 if found else build())
