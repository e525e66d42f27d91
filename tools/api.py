"""docs/api.md: the public names of the package, from their docstrings.

Takes the sources, which need not be importable; gives Markdown. What a function gives
back is described by the record's own docstring.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "cowpreload"

# By what an application does; a name of __all__ that is missing here ends `make docs`.
GROUPS = {
    "Around the fork": ("before_fork", "after_fork", "worker"),
    "What becomes immortal": ("keep_mortal", "immortal_too", "held_by"),
    "The collector": ("settle",),
    "Without a server of ours": ("freeze",),
}
RECORDS = {
    "worker": ("view.SlotView",),
    "settle": ("records.SettleReport",),
    "freeze": (
        "records.FreezeReport",
        "records.WalkReport",
        "records.SealReport",
        "records.HotReport",
    ),
}

_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes):$")
_ITEM = re.compile(r"^    ([\w, ]+): (.*)$")


def _homes() -> dict[str, str]:
    """The module of each public name, as cowpreload/__init__.py has them."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    found: dict[str, object] = {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("__all__", "_HOMES")
    }
    homes = found["_HOMES"]
    assert isinstance(homes, dict)
    names = set(found["__all__"]) - {"__version__"}  # type: ignore[call-overload]
    shown = {name for group in GROUPS.values() for name in group}
    if not names == shown == set(homes):
        raise SystemExit(f"api: put into a group: {names ^ shown}")
    return {name: home.removeprefix("cowpreload.") for name, home in homes.items()}


def _definition(module: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    path = PACKAGE / f"{module.replace('.', '/')}.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise SystemExit(f"api: {module} does not define {name}")


def markdown(docstring: str) -> list[str]:
    """The lines of a docstring; its sections become lists."""
    lines: list[str] = []
    section = False
    for line in inspect.cleandoc(docstring).splitlines():
        line = line.replace("``", "`")
        if found := _SECTION.match(line):
            section = True
            lines += [f"**{found[1]}**", ""] if found[1] != "Attributes" else []
        elif section and (item := _ITEM.match(line)):
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif section:
            lines.append(("  " if line.startswith("        ") else "") + line.strip())
        else:
            lines.append(line)
    return lines


def _function(module: str, name: str) -> list[str]:
    node = _definition(module, name)
    assert isinstance(node, ast.FunctionDef)
    signature = f"cowpreload.{name}({ast.unparse(node.args)})"
    if node.returns is not None:
        signature += f" -> {ast.unparse(node.returns)}"
    docstring = ast.get_docstring(node) or ""
    return [f"### {name}", "", "```python", signature, "```", "", *markdown(docstring)]


def _record(path: str) -> list[str]:
    module, name = path.split(".")
    docstring = ast.get_docstring(_definition(module, name)) or ""
    head, *rest = markdown(docstring)
    return [f"**{name}**: {head}", *rest]


def api() -> str:
    """The generated part of docs/api.md."""
    homes = _homes()
    lines: list[str] = []
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += [*_function(homes[name], name), ""]
            for record in RECORDS.get(name, ()):
                lines += [*_record(record), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
