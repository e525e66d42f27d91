"""The board as a file: where its descriptor is, and which ones are believed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import run

from cowpreload import _core, servers
from cowpreload.board import Board, find_masters, of_other_versions, open_board
from cowpreload.cli.record import taker
from cowpreload.cli.who import other_versions
from cowpreload.errors import NativeError, NotFoundError
from cowpreload.records import Limits

PROGRAMS = Path(__file__).parent.parent / "programs"
NOBODY = 65534


@contextmanager
def holding(*arguments: str) -> Iterator[int]:
    """The pid of a process that holds such a board."""
    program = [sys.executable, str(PROGRAMS / "false_board.py"), *arguments]
    child = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin
    assert child.stdout
    with child:
        assert child.stdout.readline() == "held\n"
        yield child.pid
        child.stdin.close()
    assert child.returncode == 0


def test_a_server_without_stdout_and_stderr_keeps_its_log_out_of_the_board(
    tmp_path: Path,
) -> None:
    """The first free descriptors are 1 and 2 then; what is printed goes there."""
    code = (
        "import os, sys\n"
        "from cowpreload.board import Board\n"
        "for fd in (0, 1, 2): os.close(fd)\n"
        "board = Board.create()\n"
        "made = open(sys.argv[1], 'w')\n"
        "print(board.fd, file=made, flush=True)\n"
    )
    out = tmp_path / "out"
    subprocess.run([sys.executable, "-c", code, out], check=True, timeout=60)
    assert int(out.read_text()) >= 3


def test_a_board_is_found_by_its_master() -> None:
    with holding("master", "0") as pid:
        assert open_board(pid).master_pid == 0
        assert pid not in find_masters()


def test_a_board_that_names_another_process_as_its_master_is_not_believed() -> None:
    with holding("master", str(os.getppid())):
        assert os.getppid() not in find_masters()


@pytest.mark.parametrize("kind", ["loose", "slots"])
def test_a_board_that_could_end_its_reader_is_refused(kind: str) -> None:
    """A file that shrinks raises SIGBUS; slots past its end are read past it."""
    with holding(kind) as pid, pytest.raises(NativeError, match="another version"):
        open_board(pid)


def test_a_master_without_a_board_has_not_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """uWSGI's reload executes itself, and `record PID` took that for its end."""

    def look_at(pid: int) -> None:
        raise NotFoundError("holds no board")

    with holding("master", "0") as pid:
        take = taker(str(pid))
        (view,) = take()
        assert view.totals.workers == 0
        monkeypatch.setattr(servers, "look_at", look_at)
        assert take() == []
    with pytest.raises(NotFoundError):
        take()


def test_a_server_of_another_version_is_not_none() -> None:
    """After an upgrade `status` said that no server runs, while it did."""
    with holding("slots") as pid:
        assert pid in of_other_versions()
        assert f"{pid}" in other_versions()
    with holding("master", "0") as pid:
        assert pid not in of_other_versions()


def test_a_file_of_the_boards_name_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with holding("file") as pid, pytest.raises(NotFoundError):
        open_board(pid)


REPLACED = """
import os, signal, sys
from pathlib import Path
from cowpreload import board
os.mkfifo(sys.argv[1])
link = Path("/proc/self/fd") / str(board.Board.create().fd)
if sys.argv[2] == "replaced":
    os.dup2(os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK), int(link.name))
signal.alarm(10)
print(board._open(Path("/proc/self"), link, os.O_RDONLY) is None)
"""


@pytest.mark.parametrize(("kind", "said"), [("replaced", "True"), ("kept", "False")])
def test_a_fifo_put_in_a_boards_place_does_not_have_its_reader_wait(
    tmp_path: Path, kind: str, said: str
) -> None:
    done = run("-c", REPLACED, str(tmp_path / "fifo"), kind, check=True)
    assert done.stdout.strip() == said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_a_file_of_a_third_user_is_no_board_of_a_process() -> None:
    """It was handed over: who made it can write to it, whoever holds it now."""
    code = (
        "import os, sys\n"
        "from cowpreload.board import Board\n"
        f"os.seteuid({NOBODY})\n"
        "board = Board.create()\n"
        "os.seteuid(0)\n"
        f"os.setuid({NOBODY - 1})\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin
    assert child.stdout
    with child:
        assert child.stdout.readline() == "held\n"
        with pytest.raises(NotFoundError):
            open_board(child.pid)
        child.stdin.close()


def test_a_free_slot_that_nobody_fills_holds_no_right_to_recycle() -> None:
    """Two had left, and one worker was wanted less when their places were filled."""
    board = Board.create()
    limits, now = Limits(max_recycling=2), _core.lib.cow_now_ms()
    for slot in (board.reserve(), board.reserve()):
        raw = _core.limits_struct(limits)
        assert _core.lib.cow_ticket_take(board.raw, slot, os.getpid(), raw, now)
    board.free(1)
    held = [each for each in board.raw.tickets if each]
    assert len(held) == 2
    board.fill_no_more()
    assert [each for each in board.raw.tickets if each] == held[1:]
    board.close()
    os.close(board.fd)
