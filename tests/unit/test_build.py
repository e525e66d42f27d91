"""What the compiler is told, in our builds and in users'."""

from __future__ import annotations

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
