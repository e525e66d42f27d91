"""Events and their file: what a line says, and where it cannot be written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cowpreload import events
from cowpreload.event_log import EventLog
from cowpreload.hosts.budgeting import NoRoom
from cowpreload.lifecycle import (
    Changed,
    Judged,
    NewWorker,
    Recycling,
    Start,
    WarmedAnew,
    warm_up,
)
from cowpreload.records import Finding, PreloadReport
from cowpreload.settings import Settings
from cowpreload.warmed import Warming

MIB = 1 << 20
RECYCLED = Recycling(
    worker=2,
    generation=5,
    pid=4242,
    action="recycled",
    reason="max-private",
    private=131 * MIB,
    limit=128 * MIB,
    age=312.4,
)
SECRET = Settings(warmup_header=(("Cookie", "session=secret"),), warmup=("/a/",))
PRELOAD = PreloadReport(
    objects=1,
    immortal=2,
    hot=3,
    sealed=4,
    heap=5,
    warmup_requests=6,
    findings=7,
    seconds=8.0,
    freeze_seconds=0.25,
)
ALL = [
    Start(SECRET, "gunicorn", "27.0.1").event(),
    Changed(SECRET, "gunicorn").event(),
    warm_up(Warming((("list", 2),), 4, 1.23456, 99)),
    Finding("thread", "name=poller", "start it later").event(),
    PRELOAD.event(),
    NewWorker(1, 1, 42, 3 * MIB, 60 * MIB, 0.25).event(),
    RECYCLED.event(),
    NoRoom(10, 20, 2, 5, 1).event(),
    WarmedAnew(pages=1).event(),
    Judged(1, 4, 27, True).event(),
    events.event("lost", events=3),
    events.event("end", seconds=1.5),
]


def test_every_kind_is_made_by_a_record_and_has_units_in_its_keys() -> None:
    assert {each.kind for each in ALL} == set(events.KINDS)
    for kind in events.KINDS.values():
        for key, meaning in kind.keys.items():
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", key)
            assert meaning
            sized = any(word in key for word in ("private", "shared", "limit", "grew"))
            assert not sized or key.endswith("_bytes"), key
            timed = any(word in key for word in ("age", "boot", "leaving"))
            assert not timed or key.endswith("_seconds") or key == "pages", key


def test_an_event_that_is_not_as_declared_is_refused() -> None:
    with pytest.raises(ValueError, match="second"):
        events.event("end", second=1.0)


def test_a_recycling_is_one_fact_as_line_and_as_event() -> None:
    assert RECYCLED.line() == (
        "cow: worker=2 gen=5 pid=4242 recycled private=131MiB limit=128MiB age=312s"
    )
    assert RECYCLED.event().values == {
        "worker": 2,
        "generation": 5,
        "pid": 4242,
        "action": "recycled",
        "reason": "max-private",
        "private_bytes": 131 * MIB,
        "limit_bytes": 128 * MIB,
        "total_bytes": None,
        "left_bytes": None,
        "stalled_share": None,
        "age_seconds": 312.4,
        "leaving_seconds": None,
        "missed": 0,
    }


@pytest.mark.parametrize(
    ("action", "reason", "leaving", "line"),
    [
        ("unheeded", "unheeded", 30.0, "unheeded private=9MiB limit=8MiB age=1s "),
        ("killed", "max-private-hard", 0.0, "killed private=9MiB hard-limit=8MiB "),
        ("recycled", "max-growth", 0.0, "recycled private=9MiB growth-limit=8MiB "),
        ("recycled", "budget", 0.0, "recycled private=9MiB budget=8MiB age=1s"),
        ("recycled", "renewed", 0.0, "recycled private=9MiB renewed age=1s"),
        ("killed", "room", 0.0, "killed private=9MiB room=8MiB age=1s"),
    ],
)
def test_each_reason_names_its_limit(
    action: str, reason: str, leaving: float, line: str
) -> None:
    end = Recycling(1, 1, 7, action, reason, 9 * MIB, 8 * MIB, 1.9, leaving)
    assert line in end.line()
    assert ("leaving=30s" in end.line()) == bool(leaving)
    no_limit = reason in ("renewed", "room")
    assert (end.event().values["limit_bytes"] is None) == no_limit


def test_pressure_is_a_part_of_the_time() -> None:
    end = replace(RECYCLED, reason="pressure", limit=123)
    assert "recycled private=131MiB pressure=some:12.3% age=312s" in end.line()
    values = end.event().values
    assert (values["stalled_share"], values["left_bytes"]) == (0.123, None)
    assert replace(end, reason="room", limit=9).event().values["left_bytes"] == 9


def test_a_budget_is_held_against_the_whole_server() -> None:
    end = replace(RECYCLED, reason="budget", limit=512 * MIB, total=530 * MIB)
    assert "private=131MiB budget=512MiB total=530MiB age=312s" in end.line()
    assert end.event().values["total_bytes"] == 530 * MIB


def test_no_secret_is_in_the_settings() -> None:
    assert "secret" not in ALL[0].line({"time": "", "master_pid": 1})
    assert ALL[0].values["settings"]["warmup-header"] == "Cookie"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[EventLog, list[str], Path]]:
    said: list[str] = []
    path = tmp_path / "events.jsonl"
    opened = EventLog()
    opened.open(str(path), said.append)
    yield opened, said, path
    opened.close()


def write(log: EventLog, seconds: float = 1.5) -> None:
    log.write(lambda: events.event("end", seconds=seconds))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_is_a_whole_json_object_with_the_time_in_utc(log: Any) -> None:
    opened, said, path = log
    write(opened)
    (line,) = read(path)
    assert list(line) == ["time", "event", "master_pid", "seconds"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert (line["master_pid"], said) == (os.getpid(), [])


@pytest.mark.parametrize("removed", [False, True])
def test_a_file_that_logrotate_moved_is_made_anew(log: Any, removed: bool) -> None:
    opened, said, path = log
    write(opened)
    if removed:
        path.unlink()
    else:
        path.rename(path.with_suffix(".1"))
    opened.turn()
    assert path.read_text() == ""
    write(opened)
    assert (len(read(path)), said) == (1, [])


def test_a_rotated_file_is_written_on_where_no_new_one_can_be_made(
    log: Any, tmp_path: Path
) -> None:
    opened, said, path = log
    moved = path.rename(tmp_path / "moved")
    path.mkdir()
    write(opened)
    write(opened)
    assert len(read(moved)) == 2
    assert len(said) == 1
    assert "written on" in said[0]


def test_a_full_disk_is_said_once_and_what_is_lost_is_counted(
    log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, said, path = log
    real, full = os.write, os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(os, "write", lambda fd, data: real(full, data))
    write(opened)
    write(opened)
    assert len(said) == 1
    assert "No space left" in said[0]
    monkeypatch.undo()
    write(opened)
    os.close(full)
    assert [each["event"] for each in read(path)] == ["lost", "end"]
    assert read(path)[0]["events"] == 2


def test_a_descriptor_that_the_application_has_closed_is_nobody_elses(
    log: Any, tmp_path: Path
) -> None:
    """Its number may be the application's database by now."""
    opened, said, path = log
    os.close(opened._fd)
    other = tmp_path / "database"
    fd = os.open(other, os.O_CREAT | os.O_WRONLY)
    assert fd == opened._fd
    write(opened)
    opened.close()
    assert (other.read_text(), len(read(path)), said) == ("", 1, [])
    os.close(fd)


def test_a_cut_line_does_not_spoil_the_next(
    log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, said, path = log
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:20]))
    write(opened)
    monkeypatch.undo()
    write(opened)
    cut, lost, end = path.read_text().splitlines()
    assert len(cut) == 20
    assert len(said) == 1
    assert (json.loads(lost)["events"], json.loads(end)["event"]) == (1, "end")


def test_a_child_writes_nothing(log: Any) -> None:
    opened, _, path = log
    pid = os.fork()
    if not pid:
        write(opened)
        os._exit(0)
    os.waitpid(pid, 0)
    assert path.read_text() == ""


def test_a_fifo_that_nobody_reads_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="No such device"):
        EventLog().open(str(tmp_path / "fifo"), print)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_a_link_is_followed_only_if_it_is_the_masters_or_roots(tmp_path: Path) -> None:
    """The directory of a log is often the workers' user's, the master root's."""
    link, target = tmp_path / "events.jsonl", tmp_path / "target"
    link.symlink_to("target")
    log = EventLog()
    log.open(str(link), print)
    write(log)
    assert len(read(target)) == 1
    target.unlink()
    os.lchown(link, 65534, 65534)
    log.turn()
    assert not target.exists()
    log.close()
    with pytest.raises(OSError, match="is a symbolic link of uid=65534"):
        log.open(str(link), print)


def test_a_nul_in_the_path_is_refused_as_any_other_and_ends_no_reload(
    tmp_path: Path,
) -> None:
    with pytest.raises(OSError, match="null"):
        EventLog().open(f"{tmp_path}/a\0b", print)


def test_a_server_without_stdin_has_no_events_among_what_others_write(
    tmp_path: Path,
) -> None:
    log, kept = EventLog(), os.dup(0)
    os.close(0)
    try:
        log.open(str(tmp_path / "events"), print)
        with pytest.raises(OSError):
            os.fstat(0)
        log.close()
    finally:
        os.dup2(kept, 0)
        os.close(kept)
