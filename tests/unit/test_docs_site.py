"""Links of the documents lead somewhere; every page is in the site, none too long."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
# What a person reads at one go. What is looked up, or is for developers, may be longer.
WORDS = 1500
LOOKED_UP = {"api", "messages", "settings"}
DEVELOPERS = {"changelog", "contributing", "experiments", "measurements", "tests"}
# Code and tables are looked at.
NOT_READ = re.compile(r"^(```).*?^\1|^ {4}.*?$|^\|.*?$", re.M | re.S)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import docs_site

    return docs_site


def nav() -> list[str]:
    """The pages that mkdocs.yml names; read without a parser of YAML."""
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    return re.findall(r": ([a-z-]+)\.md$", text, re.M)


def test_every_link_leads_to_a_file_and_a_heading(site: ModuleType) -> None:
    assert site.broken() == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](gone.md)", "docs/new.md: gone.md: no such file"),
        ("[a](why.md#no-such)", "docs/new.md: why.md#no-such: no such heading"),
        ("`[a](gone.md)` [b](https://example.org/)", None),
    ],
)
def test_a_broken_link_is_found(
    site: ModuleType, tmp_path: Path, text: str, fault: str | None
) -> None:
    (tmp_path / "docs").mkdir()
    for path in site.PAGES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("# Page\n")
    shutil.copy(ROOT / "docs" / "why.md", tmp_path / "docs")
    (tmp_path / "docs" / "why.md").write_text("# Why\n")
    (tmp_path / "docs" / "new.md").write_text(text)
    assert site.broken(tmp_path) == ([fault] if fault else [])


def test_every_page_is_in_the_navigation_once(site: ModuleType) -> None:
    pages = sorted(Path(name).stem for name in site.sources().values())
    assert sorted(nav()) == pages


def test_no_page_for_users_is_longer_than_they_read(site: ModuleType) -> None:
    too_long = {}
    for path, name in site.sources().items():
        page = Path(name).stem
        if page.split("-")[0] in LOOKED_UP or page in DEVELOPERS:
            continue
        words = len(NOT_READ.sub("", path.read_text()).split())
        if words > WORDS:
            too_long[page] = words
    assert not too_long


@pytest.mark.deep
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs: the newest Python's")
def test_the_site_is_built_strictly_and_asks_no_other_host(
    site: ModuleType, tmp_path: Path
) -> None:
    pages, out = tmp_path / "build" / "site-pages", tmp_path / "build" / "site"
    site.write_pages(pages)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in out.rglob("*.html"):
        asked = re.findall(
            r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text()
        )
        assert [each for each in asked if "canonical" not in each] == [], page
