"""The command line: what is an error of the user's, and how it is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cowpreload import _offsets
from cowpreload.causes import How
from cowpreload.cli import main, settings, who
from cowpreload.errors import NotFoundError, WhyError
from cowpreload.settings import DECLARED
from cowpreload.why.examine import examine


def fail(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """Run a command that raises `error`."""

    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr(settings, "run", run)
    return main(["settings"])


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (WhyError("pid=1: no; do that"), "pid=1: no; do that"),
        (NotFoundError("pid=1: no; do that"), "pid=1: no; do that"),
        (PermissionError(13, "Permission denied", "/a"), "/a: Permission denied"),
        (OSError("odd"), "odd"),
    ],
)
def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    text: str,
) -> None:
    assert fail(monkeypatch, error) == 1
    assert capsys.readouterr().err == f"cowpreload: {text}\n"


@pytest.mark.parametrize("error", [IndexError("x"), KeyError("x"), TypeError("x")])
def test_a_bug_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with pytest.raises(type(error)):
        fail(monkeypatch, error)


def test_an_interrupt_is_told_by_the_exit_code_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""


def test_a_reader_that_left_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "cowpreload", "settings"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--png", "/nonexistent/x.png"], "png=/nonexistent/x.png: needs a folder"),
        (["--png", "x.foo"], "png=x.foo: ends in .png"),
        (["--examples", "11"], "examples=11: is 0 to 10"),
        (["--examples", "-1"], "examples=-1: is 0 to 10"),
    ],
)
def test_why_refuses_what_it_could_not_do(
    capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["why", *arguments])
    assert stopped.value.code == 2
    assert text in capsys.readouterr().err


def test_a_result_folder_that_cannot_be_made_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    output = str(tmp_path / "file" / "results")
    assert main(["bench", "--tiny", "nelson", "--output", output]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["why", "warmup"])
@pytest.mark.parametrize(
    ("masters", "text"),
    [([], "pid: none found; start a server"), ([5, 7], "pid: masters 5, 7 found")],
)
def test_exactly_one_server_is_meant(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    masters: list[int],
    text: str,
) -> None:
    monkeypatch.setattr(who, "find_masters", lambda: masters)
    assert main([command]) == 1
    assert capsys.readouterr().err.startswith(f"cowpreload: {text}")


def test_on_a_python_that_is_not_known_the_note_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_offsets, "why_not", lambda: "objects are known on CPython")
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            found = examine(process.pid)
        finally:
            process.kill()
    assert found.how is How.MAPS
    assert found.notes[1] == "page maps alone: objects are known on CPython"
    assert "another Python" not in " ".join(found.notes)


@pytest.mark.parametrize("width", [60, 100])
def test_the_settings_fit_into_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "|" in line]
    at = lines.index("cow-strikes COUNT, default 3")
    assert lines[at + 1].startswith("    readings in a row over a soft limit ")
    for each in DECLARED:
        assert [line for line in lines if line.startswith(f"{each.option} ")]


BASH = """
source "$1"
complete_at_end() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _shtab_cowpreload; echo "${COMPREPLY[@]}"
}
complete_at_end cowpreload plu
complete_at_end cowpreload plugin build --ou
complete_at_end cowpreload warmup --file sh
"""


def test_bash_completes_commands_options_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    made = tmp_path / "shop.bash"
    made.write_text(capsys.readouterr().out)
    command = ["bash", "-c", BASH, "bash", str(made)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["plugin", "--output", "shop.bash"]
    assert done.stderr == ""


def test_zsh_takes_its_completion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", "zsh"]) == 0
    made = capsys.readouterr().out
    assert made.startswith("#compdef cowpreload\n")
    if not (zsh := shutil.which("zsh")):
        pytest.skip("no zsh here to read it")
    (tmp_path / "_cowpreload").write_text(made)
    done = subprocess.run([zsh, "-n", str(tmp_path / "_cowpreload")])
    assert done.returncode == 0


def test_without_shtab_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "zsh"]) == 1
    said = capsys.readouterr().err
    assert "shell=zsh: shtab writes it, and is not installed; pip install" in said
