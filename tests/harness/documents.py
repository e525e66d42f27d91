"""What the pages for users show to be typed or copied: commands, files and settings.

Takes README.md, docs/ and the example's README; gives the code in them. The pages for
developers are left out: their commands take hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DEVELOPERS = {"experiments.md", "measurements.md"}

PROGRAMS = {
    "apt-get",
    "celery",
    "cowpreload",
    "curl",
    "docker",
    "gunicorn",
    "jq",
    "kubectl",
    "make",
    "pip",
    "python",
    "python3",
    "sudo",
    "systemctl",
    "uwsgi",
}
"""What a command begins with, where no `$ ` says that it is one."""

_VARIABLES = re.compile(r"^(?:[A-Z_]+=\S+ )*")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """Code with a language, or "" for what is indented.

    Attributes:
        where: page and line.
        before: the line above it, which may name a file.
    """

    where: str
    language: str
    text: str
    before: str = ""

    @property
    def file(self) -> str | None:
        """The file that it is: named in a comment on its first line, or before it."""
        first = re.match(r"[#;] ([\w./-]+\.\w+)", self.text)
        named = re.findall(r"`([\w-]+\.(?:py|ini))`", self.before)
        return first[1] if first else named[-1] if named else None


@dataclass(frozen=True)
class Command:
    """A line to type, and the lines that the page shows below it."""

    where: str
    line: str
    shown: tuple[str, ...]

    @property
    def program(self) -> str:
        return _VARIABLES.sub("", self.line).split()[0]


def pages() -> list[Path]:
    """The pages for users."""
    found = list((ROOT / "docs").glob("*.md"))
    return [
        ROOT / "README.md",
        *sorted(path for path in found if path.name not in DEVELOPERS),
        ROOT / "examples" / "django_app" / "README.md",
    ]


def blocks(page: Path) -> list[Block]:
    """The code of a page, in order; indented code is a block a paragraph."""
    text = page.read_text()
    name = page.relative_to(ROOT).as_posix()
    found = []
    for each in _FENCED.finditer(text):
        line = text.count("\n", 0, each.start()) + 1
        before = text[: each.start()].rstrip().rpartition("\n")[2]
        found.append(Block(f"{name}:{line}", each[1], each[2], before))
    plain = _FENCED.sub(lambda each: "\n" * each[0].count("\n"), text)
    for each in re.finditer(r"(?:^ {4}.*\n)+", plain, re.M):
        line = plain.count("\n", 0, each.start()) + 1
        code = re.sub(r"^ {4}", "", each[0], flags=re.M)
        found.append(Block(f"{name}:{line}", "", code))
    return found


def commands(page: Path) -> list[Command]:
    """What a page shows to be typed."""
    found = []
    for block in blocks(page):
        if block.language not in ("", "sh", "console", "text"):
            continue
        place, _, first = block.where.rpartition(":")
        lines = block.text.splitlines()
        starts = [at for at, line in enumerate(lines) if _is_command(line)]
        ends = [*starts[1:], len(lines)]
        for at, following in zip(starts, ends, strict=False):  # where nothing starts
            line = lines[at].removeprefix("$ ").split(" #")[0].strip()
            shown = tuple(lines[at + 1 : following])
            found.append(Command(f"{place}:{int(first) + at}", line, shown))
    return found


def _is_command(line: str) -> bool:
    typed = _VARIABLES.sub("", line)
    return line.startswith("$ ") or typed.partition(" ")[0] in PROGRAMS
