"""What other users can do to us, and what they can have root's tools do. See
docs/security.md, whose table names these tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from conftest import PROGRAMS, Servers, deep, run
from harness.processes import alive, wait_until

from cowpreload import ending, plugin_build, servers, warmup_file
from cowpreload.board import Board, find_masters, open_board
from cowpreload.cli import exporter
from cowpreload.doctor.attend import Orders, _Attendance
from cowpreload.errors import PluginBuildError

NOBODY = 65534
two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


def as_nobody(body: Callable[[], bool]) -> bool:
    """What `body` finds as another user; whatever it raises is a no."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = 0 if body() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def refused(body: Callable[[], object]) -> Callable[[], bool]:
    def found() -> bool:
        try:
            body()
        except PermissionError:
            return True
        return False

    return found


# ---- the board ---------------------------------------------------------------


@two_users
def test_another_user_sees_no_board_and_opens_none() -> None:
    board = Board.create()
    mine, path = os.getpid(), f"/proc/{os.getpid()}/fd/{board.fd}"
    assert os.fstat(board.fd).st_mode & 0o777 == 0o600
    assert as_nobody(lambda: not find_masters())
    for flags in (os.O_RDONLY, os.O_RDWR):
        assert as_nobody(refused(lambda flags=flags: os.open(path, flags)))
    assert as_nobody(refused(lambda: os.open(f"/proc/{mine}/mem", os.O_RDONLY)))


@contextmanager
def forged(kind: str, *arguments: str) -> Iterator[int]:
    """The pid of a process of nobody's that holds such a board."""
    command = [sys.executable, str(PROGRAMS / "forged_board.py"), kind, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        assert child.stdout.readline() == "held\n"
        try:
            yield child.pid
        finally:
            child.stdin.close()
            child.wait(20)


@two_users
def test_a_board_that_names_another_users_processes_has_root_read_none() -> None:
    """One could be large: 20 ms a GiB, for each of a thousand slots."""
    with forged("names", str(os.getpid())) as pid, closing(open_board(pid)) as board:
        assert board.view(1).pid == os.getpid()
        view = servers.look(board)
        assert {each.private for each in view.slots} == {7}
        assert view.master.private > 7  # which is its maker's


@two_users
@pytest.mark.parametrize("kind", ["random", *deep("names")])
def test_roots_commands_end_on_another_users_board_with_figures_or_a_line(
    kind: str,
) -> None:
    with forged(kind, "1") as pid:
        for command in (["status", str(pid)], ["why", str(pid)]):
            done = run("-m", "cowpreload", *command)
            assert "Traceback" not in done.stderr, done.stderr
            assert done.returncode in (0, 1, 2)
            assert "\x1b" not in done.stdout
        assert alive(pid)


@two_users
@pytest.mark.deep
def test_roots_other_commands_end_on_another_users_board_too() -> None:
    with forged("random", "1") as pid:
        for command in (["exporter", "--once"], ["doctor"], ["learned", str(pid)]):
            done = run("-m", "cowpreload", *command)
            assert "Traceback" not in done.stderr, done.stderr
        assert alive(pid)


# ---- files -------------------------------------------------------------------


@two_users
def test_another_users_link_leads_no_event_log_of_roots_uwsgi(
    started: Servers, tmp_path: Path
) -> None:
    """The plugin opens the log before uWSGI drops privileges."""
    link, target = tmp_path / "events.jsonl", tmp_path / "target"
    link.symlink_to(target)
    os.lchown(link, NOBODY, NOBODY)
    server = started.uwsgi({"cow-event-log": str(link)})
    assert server.wait_exit() == 1
    assert f"event-log={link}: is a symbolic link of uid={NOBODY}; " in server.log
    assert not target.exists()


@pytest.fixture(name="started")
def _started(servers: Servers) -> Servers:
    return servers  # `servers` is a module here


def test_the_plugin_is_not_built_where_any_user_could_put_another(
    tmp_path: Path,
) -> None:
    """uWSGI loads it as root; in a directory of all, who comes first or last wins."""
    world = tmp_path / "world"
    world.mkdir()
    world.chmod(0o1777)
    with pytest.raises(PluginBuildError, match="any user can write to"):
        plugin_build.build("no-uwsgi", world)
    below = world / "below"
    below.mkdir()
    assert plugin_build._anybodys(below) == ""  # the sticky bit protects it
    world.chmod(0o777)
    assert "any user can write to" in plugin_build._anybodys(below)


def test_a_link_that_waits_for_the_plugin_is_not_written_through(
    tmp_path: Path,
) -> None:
    """`.cow_plugin.so` was a name that everybody knew."""
    made, secret, output = tmp_path / "made", tmp_path / "secret", tmp_path / "lib"
    made.write_bytes(b"plugin")
    secret.write_bytes(b"secret")
    output.mkdir()
    for name in (".cow_plugin.so", "cow_plugin.so"):
        (output / name).symlink_to(secret)
    plugin_build._put(made, output)
    assert secret.read_bytes() == b"secret"
    put = output / "cow_plugin.so"
    assert (put.read_bytes(), put.is_symlink()) == (b"plugin", False)
    assert put.stat().st_mode & 0o777 == 0o755


def test_what_visitors_requested_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "warm"
    assert warmup_file.store(str(path), b"#") == ""
    assert path.stat().st_mode & 0o777 == 0o600


# ---- processes ---------------------------------------------------------------


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, that nobody is to end."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def lives_on(process: subprocess.Popen[bytes]) -> bool:
    """Whether no signal has ended it, which takes a moment."""
    try:
        process.wait(0.3)
    except subprocess.TimeoutExpired:
        return True
    return False


def test_a_process_that_has_got_a_childs_pid_is_not_ended(
    stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child was listed, reaped by its parent, and its pid given to another."""
    monkeypatch.setattr(ending, "children", lambda parent: {str(stranger.pid)})
    ending.end_all(ending.held(1))
    assert lives_on(stranger)
    ending.end_all(ending.held(os.getpid()))  # whose child it is
    assert stranger.wait(20) == -signal.SIGKILL


def test_the_doctor_aborts_no_process_that_has_got_the_subjects_pid(
    stranger: subprocess.Popen[bytes],
) -> None:
    attending = _Attendance(Orders("app"), print)
    attending._session, attending._deepest = os.getpid(), stranger.pid
    attending._show_stack()
    assert lives_on(stranger)
    attending._session = stranger.pid
    attending._show_stack()
    assert stranger.wait(20) == -signal.SIGABRT


# ---- the exporter ------------------------------------------------------------


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(exporter, "_CLIENT_SECONDS", 0.5)
    server = exporter._server("127.0.0.1:0", lambda newer: "# none\n")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    with server:
        host, port = server.server_address[:2]
        yield str(host), int(port)
        server.shutdown()
        thread.join()


def closed(client: socket.socket) -> bool:
    """Whether the other side has closed it."""
    try:
        return client.recv(4096, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_clients_that_say_a_byte_now_and_then_keep_no_scrape_from_being_answered(
    listening: tuple[str, int],
) -> None:
    assert exporter.LISTEN.startswith("127.0.0.1:")
    slow = [socket.create_connection(listening) for _ in range(exporter._CLIENTS)]

    def all_gone() -> bool:
        for each in slow:
            try:
                each.send(b"G")
            except OSError:
                continue
        return all(map(closed, slow))

    wait_until(all_gone, 20, "the end of slow clients")
    for each in slow:
        each.close()

    def answered() -> bool:
        with socket.create_connection(listening) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            try:
                return b"# none" in client.recv(4096) + client.recv(4096)
            except OSError:
                return False

    wait_until(answered, 20, "an answer")


def test_the_exporter_answers_nothing_of_what_it_was_asked(
    listening: tuple[str, int],
) -> None:
    with socket.create_connection(listening) as client:
        client.sendall(
            b"GET /a%0d%0aSet-Cookie:a=1\rX:b HTTP/1.0\r\nHost: evil\r\n\r\n"
        )
        client.settimeout(20)
        text = b"".join(iter(lambda: client.recv(4096), b""))
    assert text.startswith(b"HTTP/1.0 404 ") or text.startswith(b"HTTP/1.0 400 ")
    assert b"Set-Cookie" not in text.partition(b"\r\n\r\n")[0].partition(b"\r\n")[2]
    assert b"evil" not in text
