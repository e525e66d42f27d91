"""Every line that a server of ours can log, and every refusal, as the sources are.

Takes the sources of the package and of the plugin; gives templates, with HOLE where a
value is filled in. docs/messages.md says of each what it means: a test compares both.

A line is a string that begins with `cow:`; a refusal or an advice is one of the form
`...; what to do`. Reasons that stand behind a colon of such a line are of that form, or
in a module of REASONS, whose strings of several words are nothing else. What a command
prints on the terminal of the person who typed it explains itself, and is left out.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "cowpreload"
HOLE = "{}"

COMMANDS = (
    "_offsets.py",
    "bench",
    "cli",
    "doctor",
    "plugin_build.py",
    "report",
    "tryout",
    "why",
)
"""What only commands of a terminal print."""

REASONS = (
    "hot_code.py",
    "hosts/learning.py",
    "hosts/rewarming.py",
    "hosts/serving.py",
    "hosts/uwsgi_serving.py",
    "immortal.py",
    "trial.py",
    "warmup_user.py",
)

LEFT_OUT = (
    "django/checks.py",
    "events.py",
    "metrics.py",
    "routes/left_out.py",
    "servers.py",
    "settings.py",
)
"""Declarations and words that other pages show; what commands say."""

OTHERS = {
    "cow: closing … before a fork: given up after … s; what is still open its children "
    "share: close it in a before_fork callback",
    "cow: before_fork callbacks, called again: given up after … s; it waits for what "
    "its first call ended: let it return when called again",
}
"""Lines that no string begins, or more than one makes."""

_PERCENT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[a-zA-Z]")
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERALS = re.compile(rf"{_LITERAL.pattern}(?:\s*{_LITERAL.pattern})*")


class Message(NamedTuple):
    """A template, and the file and line where it is."""

    text: str
    where: str

    def is_line(self, line: str) -> bool:
        """Whether it gives this line, with anything in its holes."""
        parts = self.text.split(HOLE)
        if max(parts, key=len) not in line:  # a hundredth of what the pattern costs
            return False
        return re.fullmatch(".*?".join(map(re.escape, parts)), line) is not None


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else HOLE
            for part in node.values
        )
    return None


def _strings(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Strings that are values: no docstring, and no part of another string."""
    text = _text(node)
    if text is not None:
        yield text, getattr(node, "lineno", 0)
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and _text(child.value) is not None):
            yield from _strings(child)


def is_told(template: str) -> bool:
    """Whether it says something by itself: holes alone frame what others say."""
    return bool(re.search(r"\w{2}", template.removeprefix("cow: ").replace(HOLE, "")))


@functools.cache
def in_python(path: Path, name: str) -> list[Message]:
    """The messages of a module of the package, `name` from there."""
    found = []
    for text, line in _strings(ast.parse(path.read_text())):
        text = " ".join(_PERCENT.sub(HOLE, text).split())
        reason = name in REASONS and len(text.split()) > 2
        if text.startswith("cow: ") or re.search(r"\S; \S", text) or reason:
            found.append(Message(text, f"cowpreload/{name}:{line}"))
    return found


def _in_c(path: Path) -> Iterator[Message]:
    source = path.read_text()
    for found in _LITERALS.finditer(source):
        text = "".join(_LITERAL.findall(found[0])).replace("\\n", "")
        if text.startswith("cow: "):
            line = source.count("\n", 0, found.start()) + 1
            yield Message(
                _PERCENT.sub(HOLE, text), f"{path.relative_to(ROOT).as_posix()}:{line}"
            )


@functools.cache
def messages(commands: bool = False) -> list[Message]:
    """All of them, in the order of the files; of commands, too, if they are wanted."""
    found: list[Message] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        wanted = commands or name.parts[0] not in COMMANDS
        if wanted and str(name) not in LEFT_OUT:
            found += in_python(path, name.as_posix())
    for folder in (PACKAGE / "native", ROOT / "plugin"):
        for path in sorted(folder.glob("*.c")):
            if not path.name.startswith("_"):
                found += _in_c(path)
    return found


if __name__ == "__main__":
    for each in messages():
        print(f"{each.where}: {each.text}")
