"""The generated parts of the documents follow the figures that they show."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parent.parent.parent


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/docs.py on a copy of the documents."""
    shutil.copytree(CHECKOUT / "docs", tmp_path / "docs")
    shutil.copy(CHECKOUT / "README.md", tmp_path)
    monkeypatch.syspath_prepend(str(CHECKOUT / "tools"))
    import docs

    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "FIGURES", tmp_path / "docs" / "figures")
    monkeypatch.setattr(sys, "argv", ["docs.py", "--check"])
    return docs


def test_the_documents_are_up_to_date(docs: ModuleType) -> None:
    assert docs.main() == 0


@pytest.mark.parametrize("name", ["instagram-3.13", "nelson-3.11", "scale-3.11"])
def test_a_changed_figure_fails_the_check(
    docs: ModuleType, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = docs.FIGURES / f"{name}.json"
    figures = json.loads(path.read_text())
    figures["versions"]["python"] = "3.99.0"
    path.write_text(json.dumps(figures))
    assert docs.main() == 1
    said = capsys.readouterr().err
    assert f"docs/experiments.md: part {name} is old" in said
    assert f"{name}.png is old" in said


def test_a_missing_picture_fails_the_check(
    docs: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs.FIGURES / "scale-3.13.png").unlink()
    assert docs.main() == 1
    assert "scale-3.13.png is old" in capsys.readouterr().err


def test_what_was_not_measured_is_said(docs: ModuleType) -> None:
    results = docs.results()
    for found in results.values():
        found["nelson"] = {**found["nelson"], "memory": {}, "throughput": {}}
    assert "not measured" in docs.claims.claims(results)
