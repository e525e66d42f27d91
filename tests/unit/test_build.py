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
    core = runpy.run_path(str(ROOT / "cowpreload" / "native" / "build.py"))
    flags = core["core"]._assigned_source[3]["extra_compile_args"]
    assert any("Werror" in flag for flag in flags) is strict
