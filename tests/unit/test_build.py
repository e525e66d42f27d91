"""What the compiler is told, in our builds and in users'."""

from __future__ import annotations

import hashlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(("given", "strict"), [(None, False), ("1", True)])
def test_a_warning_ends_no_build_but_our_own(
    given: str | None, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer compiler has newer warnings; an install must go on."""
    if given is None:
        monkeypatch.delenv("COW_WERROR", raising=False)
    else:
        monkeypatch.setenv("COW_WERROR", given)
    plugin = runpy.run_path(str(ROOT / "plugin" / "uwsgiplugin.py"))
    assert any("Werror" in flag for flag in plugin["CFLAGS"]) is strict
    assert any("Werror" in flag for flag in of_the_core()) is strict


def of_the_core() -> list[str]:
    core = runpy.run_path(str(ROOT / "cowpreload" / "native" / "build.py"))
    flags: list[str] = core["core"]._assigned_source[3]["extra_compile_args"]
    return flags


@pytest.mark.parametrize(
    ("given", "ours"), [("", ["-O2"]), ("-g -I/x", ["-O2"]), ("-g -O1", [])]
)
def test_the_optimization_that_cflags_ask_for_is_not_overruled(
    given: str, ours: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last level on the command line counts, and ours came after a packager's."""
    monkeypatch.setenv("CFLAGS", given)
    assert [flag for flag in of_the_core() if flag.startswith("-O")] == ours


def test_what_the_plugin_and_python_share_has_a_revision_of_its_own() -> None:
    """A plugin one commit older met a function that was not there, and no start told
    what to do: what differs is to be refused by COW_REVISION, at every commit."""
    headers = ("board.h", "served.h", "cow.h", "immortal.h", "moved.h")
    core = "".join(
        (ROOT / "cowpreload" / "native" / name).read_text() for name in headers
    )
    core = re.sub(r"/\*.*?\*/", "", core, flags=re.DOTALL)
    shared = re.findall(r"^struct cow_\w+ \{.*?^\}", core, re.DOTALL | re.MULTILINE)
    for source in sorted((ROOT / "plugin").glob("*.c")):
        text = source.read_text()
        shared += re.findall(r'cow_call\((\w+),\s*"(\w+)",\s*"(.*?)"', text)
        shared += re.findall(r'in_python\("(\w+)"\)', text)
        shared += re.findall(r'\{"(\w+)", \w+, (METH_\w+)', text)
        shared += re.findall(r'(?:BuildValue|ParseTuple)\(.*?"(.*?)"', text)
    assert len(shared) > 50
    digest = hashlib.sha256(re.sub(r"\s+", " ", str(shared)).encode()).hexdigest()[:12]
    (revision,) = re.findall(r"#define COW_REVISION (\d+)u", core)
    # Changed? Raise COW_REVISION, and put both here.
    assert (revision, digest) == ("18", "fb1c88101f42")
