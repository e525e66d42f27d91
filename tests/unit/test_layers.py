"""The tree shows the way of the data: imports point one way only."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "cowpreload"
BASE = {
    "_version",
    "errors",
    "units",
    "budget",
    "kinds",
    "records",
    "events",
    "metric_kinds",
    "metrics",
    "server_names",
    "listening",
    "event_log",
    "lifecycle",
    "candidates",
    "warmed",
    "causes",
    "settings",
    "settings_given",
    "deadline",
    "forks",
    "interface",
    "collector",
    "origins",
    "opcodes",
    "paths",
    "_core",
    "code_objects",
    "_offsets",
    "ending",
    "texts",
    "pids",
    "slots",
    "view",
    "capacity",
    "application",
    "diagnosis",
    "threads",
    "native",
}
WHY = {"why"}
STAGES = {
    "routes",
    "trial",
    "trial_child",
    "warmup",
    "warmup_asgi",
    "warmup_file",
    "warmup_lines",
    "warmup_user",
    "warmup_visits",
    "warmup_wsgi",
    "callbacks",
    "closing",
    "executors",
    "generators",
    "loops",
    "mending",
    "audit",
    "audit_descriptors",
    "audit_loops",
    "audit_threads",
    "freezing",
    "hot_code",
    "holders",
    "immortal",
    "sealing",
    "settling",
    "served",
    "warmings",
    "shapes",
    "rewarm",
    "hints",
    "watch",
    "board",
    "about",
    "freezes",
    "prometheus",
    "servers",
    "leave",
    "writers",
    "room",
}
# Where one stage has two files.
PARTS = {
    "watch": {"board"},
    "served": {"board"},
    "about": {"board"},
    "warmings": {"board"},
    "freezes": {"board"},
    "prometheus": {"servers", "watch"},
    "servers": {"about", "board", "freezes", "warmings"},
    "immortal": {"freezing"},
    "freezing": {"holders"},
    "routes": {"routes"},
    "trial": {"trial_child"},
    "warmup": {"warmup_visits"},
    "warmup_visits": {"warmup_asgi", "warmup_wsgi"},
    "warmup_asgi": {"loops"},
    "closing": {"executors", "loops"},
    "mending": {"executors", "generators"},
    "audit": {"audit_descriptors", "audit_loops", "audit_threads"},
    "leave": {"writers"},
    "writers": {"room"},
    "settling": {"freezing", "writers"},
}
COMPOSE = {"hosts", "cli", "bench", "doctor", "tryout"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """First part below cowpreload of all that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "cowpreload"
        ):
            parts = (node.module or "").split(".")
            found |= (
                {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
            )
    return found


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def against_the_way(path: Path) -> set[str]:
    """What this module must not import."""
    own, used = part(path), imports(path)
    against: set[str] = set()
    if own in BASE:
        against |= used - BASE
    elif own in STAGES:
        against |= used - BASE - PARTS.get(own, set())
    elif own in WHY:
        against |= used - BASE - WHY - {"board"}
    elif own == "report":
        shown = {"records", "candidates", "warmed", "causes", "diagnosis", "view"}
        against |= used - shown - {"metrics", "units", "report"}
    if own not in COMPOSE and own != "__main__":
        # __init__ names the public functions, and freeze() is a composition too.
        # `celery` and `forkserver` are names that users write, of hosts.
        names = ("startup", "__init__", "celery", "forkserver")
        may = {"hosts"} if own in names else {own}
        against |= used & (COMPOSE - may)
    return against


# One test for all modules: as many tests as there are modules take each process of
# pytest-xdist longer than what they look at.
def test_imports_follow_the_way_of_the_data() -> None:
    found = {path: against_the_way(path) for path in MODULES}
    assert {path: against for path, against in found.items() if against} == {}


def test_no_file_is_too_long() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in MODULES}
    assert {path: each for path, each in lines.items() if each > 300} == {}


def test_all_files_say_what_they_are() -> None:
    trees = {path: ast.parse(path.read_text()) for path in MODULES}
    assert [path for path, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_what_try_concludes_needs_no_server() -> None:
    for name in ("records", "plan", "answers", "logs", "advice"):
        used = imports(PACKAGE / "tryout" / f"{name}.py")
        assert used <= BASE | {"tryout", "shapes"}, name


@pytest.mark.parametrize("name", ["_cow", "_offsets"])
def test_one_module_imports_an_extension(name: str) -> None:
    line = f"from cowpreload.native.{name} import"
    users = [path.name for path in MODULES if line in path.read_text()]
    assert users == [{"_cow": "_core.py"}.get(name, f"{name}.py")]


def test_a_fault_of_the_bench_cannot_hide_in_the_tests() -> None:
    """They have a harness of their own; only the tests of the bench import it."""
    tests = PACKAGE.parent / "tests"
    users = [path.name for path in tests.rglob("*.py") if "bench" in imports(path)]
    assert [name for name in users if not name.startswith("test_bench")] == []
