"""`cowpreload.django` in INSTALLED_APPS: its checks, what they claim, what it warms."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAMS, ROOT, SITE

from cowpreload.units import MIB

DOCS = (ROOT / "docs" / "django.md").read_text()
PAGE = "{% load i18n %}" + "{% for item in items %}{% if item %}{{ item }}{% endif %}"
PAGE += "{{ item|add:1 }}{% endfor %}" + "{% url 'x' as y %}{{ y }}" * 40
IDS = [f"cowpreload.W00{number}" for number in range(1, 5)]


def python(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, timeout=120, cwd=SITE,
        env={**os.environ, "SHOP_NELSON": "0", "SHOP_CATALOGUE_MB": "1", **environ},
    )  # fmt: skip


@pytest.fixture(scope="module", name="tried")
def try_claims(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What tests/programs/checked_site.py found."""
    folder = tmp_path_factory.mktemp("templates")
    for number in range(40):
        (folder / f"{number}.html").write_text(PAGE)
    (folder / "broken.html").write_text("{% nothing %}")
    done = python(str(PROGRAMS / "checked_site.py"), str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cow: django urls=0 templates=40 ") == 1
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.each_python
def test_each_check_finds_what_it_is_about(tried: dict[str, Any]) -> None:
    assert tried["ids"] == IDS


@pytest.mark.each_python
def test_what_the_checks_claim_is_so(tried: dict[str, Any]) -> None:
    assert tried["threads in a worker"] == 1
    assert tried["cached by the first"] >= 4 * MIB
    assert tried["seen by the second"] is False
    assert tried["signed in with the first"] is True
    assert tried["signed in with the second"] is False
    assert tried["compiled once by a cached loader"] is True
    assert tried["compiled once by another"] is False


def test_a_pool_of_connections_is_closed_before_the_fork(tried: dict[str, Any]) -> None:
    """It keeps its connections, and threads, when a connection is closed."""
    assert tried["pool"] == "closed"


def test_templates_that_no_page_has_used_are_shared(tried: dict[str, Any]) -> None:
    assert tried["rendered cold"] > 3 * MIB / 2
    # Who reads a mortal object copies its page: 0.9 MiB of 5.5 were saved on 3.11.
    part = 2 if sys.version_info >= (3, 12) else 1
    assert tried["rendered warm"] < tried["rendered cold"] / part


def test_every_command_of_the_page_is_run_here() -> None:
    shown = re.findall(r"^    \$ (.*)", DOCS, re.MULTILINE)
    assert shown == ["python manage.py check --tag cowpreload"]
    assert sorted(re.findall(r"^\| `(cowpreload\.W\d+)`", DOCS, re.MULTILINE)) == IDS


def test_manage_py_shows_the_warnings_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "local.py").write_text(
        "from shop.settings import *\n"
        "INSTALLED_APPS = [*INSTALLED_APPS, 'cowpreload.django']\n"
        "SESSION_ENGINE = 'django.contrib.sessions.backends.cache'\n"
    )
    environ = {"DJANGO_SETTINGS_MODULE": "local", "PYTHONPATH": str(tmp_path)}
    done = python("manage.py", "check", "--tag", "cowpreload", **environ)
    assert done.returncode == 0, done.stderr
    # Django's default cache is in the process, too; W003 is for who has chosen it.
    assert re.findall(r"\((cowpreload\.W\d+)\)", done.stderr) == ["cowpreload.W004"]


def test_the_command_line_imports_nothing_of_it() -> None:
    """Where there is no Django, that would end every command."""
    import cowpreload.cli  # noqa: F401

    assert "cowpreload.django" not in sys.modules
