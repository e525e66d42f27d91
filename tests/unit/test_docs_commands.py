"""Commands, files and settings that the pages show are ones that are taken.

Nothing is started here but one interpreter, which asks gunicorn's own parser; the quick
start is really run by integration/test_docs_run.py.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PYPY
from harness.documents import ROOT, Block, Command, blocks, commands, pages

from cowpreload.cli import parser
from cowpreload.kinds import GUNICORN, UWSGI
from cowpreload.settings import DECLARED
from cowpreload.settings_given import read, unknown_faults

COMMANDS = [each for page in pages() for each in commands(page)]
BLOCKS = [each for page in pages() for each in blocks(page)]

# Not even their arguments can be checked here, and why.
CANNOT = {
    "celery": "test_celery.py starts workers",
    "curl": "asks a server that runs; test_docs_run.py does",
    "docker": "no daemon where tests run",
    "jq": "a program of its own, which need not be there",
    "python": "Django's commands of a site",
}

ASK = """
import json, sys
from gunicorn.app.wsgiapp import WSGIApplication
from gunicorn.config import Config
question, faults = json.load(sys.stdin), {}
for where, arguments in question["commands"]:
    try:
        cfg = Config()
        given = vars(cfg.parser().parse_args(arguments))
        assert given.pop("args"), "names no application"
        for name, value in given.items():
            if value is not None:
                cfg.set(name.lower(), value)
        cfg.worker_class
    except (Exception, SystemExit) as error:
        faults[where] = repr(error)
for where, path in question["files"]:
    try:
        application = WSGIApplication.__new__(WSGIApplication)
        application.usage = application.prog = application.callable = None
        application.load_default_config()
        given = application.get_config_from_filename(path)
        names = {name for name in given if name.islower() and name[0] != "_"}
        unknown = names - set(application.cfg.settings)
        assert not unknown, unknown
        application.load_config_from_file(path)
        application.cfg.worker_class
    except (Exception, SystemExit) as error:
        faults[where] = repr(error)
print(json.dumps(faults))
"""


def of(program: str) -> list[Command]:
    return [each for each in COMMANDS if each.program == program]


def served() -> Iterator[tuple[str, list[str]]]:
    """The command lines of gunicorn: typed, of a unit, of a container."""
    for each in of("gunicorn"):
        yield each.where, [part for part in shlex.split(each.line)[1:] if part != "..."]
    for block in BLOCKS:
        for line in re.findall(r"^ExecStart=\S+/gunicorn (.*)$", block.text, re.M):
            yield block.where, shlex.split(line)
        for array in re.findall(r'\["[^]]*/gunicorn"[^]]*\]', block.text):
            yield block.where, json.loads(array)[1:]


def test_every_command_has_a_check_or_a_reason() -> None:
    checked = {"cowpreload", "gunicorn", "pip", "uwsgi"}
    assert {each.program for each in COMMANDS} == checked | set(CANNOT)
    assert len(COMMANDS) > 30


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What gunicorn says of the command lines and files that it does not take.

    Of the pages', and of a wrong one of each kind; asked in one process.
    """
    directory = tmp_path_factory.mktemp("conf")
    wrong = ("wrong.py", "", "cow_max_privat = '1G'\n")
    files = [Block(*wrong), *(block for block in BLOCKS if is_configuration(block))]
    question = {
        "commands": [
            ("misspelt", ["--cow-max-privat", "1", "app"]),
            ("no application", ["-k", "cow"]),
            *served(),
        ],
        "files": [],
    }
    for at, block in enumerate(files):
        path = directory / f"conf{at}.py"
        path.write_text(block.text)
        question["files"].append((block.where, str(path)))
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    faults: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return faults


def is_configuration(block: Block) -> bool:
    return block.language == "python" and block.file == "gunicorn.conf.py"


def test_gunicorn_takes_every_command_line_and_file(refused: dict[str, str]) -> None:
    assert len(list(served())) > 8
    assert len(list(filter(is_configuration, BLOCKS))) >= 2
    assert set(refused) == {"misspelt", "no application", "wrong.py"}, refused
    assert refused["misspelt"] == "SystemExit(2)"
    assert "names no application" in refused["no application"]
    assert "cow_max_privat" in refused["wrong.py"]


def given(ini: str) -> dict[str, str | list[str]]:
    """Our settings of an ini, as uWSGI's plugin hands them on."""
    pairs = re.findall(r"^(cow-[\w-]+) = (.*)$", ini, re.M)
    assert unknown_faults([name for name, _ in pairs], UWSGI) == []
    found: dict[str, str | list[str]] = {}
    for each in DECLARED:
        values = [value for name, value in pairs if name == each.option]
        if values and UWSGI in each.hosts:
            found[each.attribute] = values if each.repeatable else values[-1]
    return found


@pytest.mark.parametrize("language", ["python", "ini", "yaml"])
def test_what_is_shown_can_be_read(language: str) -> None:
    found = [each for each in BLOCKS if each.language == language]
    assert found
    for block in found:
        if language == "python" and not block.text.startswith("cowpreload."):
            compile(block.text, block.where, "exec")  # all but signatures, of api.md
        elif language == "ini":
            read(given(block.text), environ={})
        elif language == "yaml":
            yaml = pytest.importorskip("yaml", reason="no PyYAML; mkdocs brings it")
            assert yaml.safe_load(block.text)


def test_our_commands_take_their_arguments() -> None:
    for each in of("cowpreload"):
        for line in each.line.split(";"):
            parser().parse_args(shlex.split(line)[1:])


def test_variables_of_the_environment_are_settings() -> None:
    known = {each.environment for each in DECLARED if GUNICORN in each.hosts}
    for block in BLOCKS:
        if block.language in ("dockerfile", "yaml", "ini"):
            named = set(re.findall(r"\bCOW_\w+", block.text))
            assert named <= known | {"COW_PLUGINS_DIR"}, block.where


def test_extras_and_targets_that_are_named_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    extras = set(re.findall(r"^([a-z]+) = \[", project, re.M))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in pages():
        text = page.read_text()
        for names in re.findall(r"(?:cowpreload|'\.)\[([a-z,]+)\]", text):
            assert set(names.split(",")) <= extras, page
        assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets, page


@pytest.mark.skipif(PYPY, reason="as on CPython")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze: apt-get install systemd")
    (unit,) = (each for each in BLOCKS if each.text.startswith("# /etc/systemd"))
    path = tmp_path / "shop.service"
    path.write_text(unit.text.replace("/srv/venv/bin/gunicorn", sys.executable))
    verify = ["systemd-analyze", "verify", str(path)]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_uwsgi_command_names_an_ini_that_is_shown() -> None:
    shown = {each.file for each in BLOCKS if each.language == "ini"} | {"uwsgi.ini"}
    for each in of("uwsgi"):
        named = [part for part in shlex.split(each.line) if part.endswith(".ini")]
        assert named, each.where
        assert set(named) <= shown, each.where
