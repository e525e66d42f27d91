"""What `record` writes is whole lines, and `plot` reads all of it, and more."""

from __future__ import annotations

import argparse
import json
import os
import resource
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest
from harness.views import MIB, server, slot, told

from cowpreload.cli import main, needs, record
from cowpreload.cli.lines import LineFile
from cowpreload.cli.record import duration
from cowpreload.errors import NotFoundError
from cowpreload.report.status_json import status_object
from cowpreload.report.timeline import Mark, timelines
from cowpreload.view import ServerView


def recorded(*views: ServerView) -> list[str]:
    """A line a reading, ten seconds apart."""
    return [
        json.dumps(status_object([view], 1e9 + 10 * at))
        for at, view in enumerate(views)
    ]


def test_a_line_that_is_left_half_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"a": 1}\n{"a": ')
    with LineFile(str(path)) as file:
        assert file.add('{"a": 2}') == ""
    assert path.read_text() == '{"a": 1}\n{"a": \n{"a": 2}\n'


def test_a_disk_that_is_full_is_said_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with LineFile(str(path)) as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            faults = [file.add("x" * 59) for _ in range(3)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert faults == ["", "File too large", "File too large"]
        assert file.add("y" * 59) == ""
    assert path.read_text() == f"{'x' * 59}\n{'y' * 59}\n"
    with LineFile("/dev/full") as full:
        assert full.add("x") == "No space left on device"


def test_two_recordings_into_one_file_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "lines")
    with LineFile(path), pytest.raises(NotFoundError, match="another recording"):
        LineFile(path)


def test_a_reader_that_leaves_ends_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with LineFile(str(path)) as file:
        assert (file.add("x"), file.reader_left) == ("", False)
        os.close(reader)
        assert (file.add("x"), file.reader_left) == ("Broken pipe", True)


@pytest.mark.parametrize(
    ("text", "seconds"), [("2.5", 2.5), ("10s", 10), ("5m", 300), ("6h", 21600)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "0", "-5", "5w", "nan", "inf", "0.01"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no duration of"):
        duration(text)


def test_a_worker_that_is_replaced_is_marked_with_the_reason() -> None:
    views = [
        server(slot(1), slot(2)),
        server(slot(1), slot(2, generation=2, last=told(generation=1))),
        server(slot(1, generation=2)),  # told by its host; slot 2 is empty
        server(slot(1, generation=2), slot(2, generation=4, last=told("renewed", 3))),
    ]
    (line,), bad = timelines([*recorded(*views), "{", "", "[]", "17\n"])
    assert bad == 3
    assert line.times == [1e9, 1e9 + 10, 1e9 + 20, 1e9 + 30]
    assert line.master == [17 * MIB] * 4
    assert [each > 0 for each in line.slots[2]] == [True, True, False, True]
    assert line.total[2] == 17 * MIB + line.slots[1][2]
    assert line.marks == [
        Mark(1e9 + 10, 2, "max-private"),
        Mark(1e9 + 20, 1, "ended"),
        Mark(1e9 + 30, 2, "renewed"),
    ]


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="no matplotlib")
@pytest.mark.parametrize(
    ("end", "magic"),
    [
        ("png", b"\x89PNG"),
        pytest.param("svg", b"<?xml", marks=pytest.mark.deep),
    ],
)
def test_a_picture_of_two_servers(tmp_path: Path, end: str, magic: bytes) -> None:
    many = [slot(number, generation=1) for number in range(1, 17)]
    one = recorded(server(*many), server(*many), server(*many[:5]))
    two = recorded(server(slot(), pid=8000), server(slot(generation=3), pid=8000))
    file, picture = tmp_path / "lines", tmp_path / f"picture.{end}"
    file.write_text("\n".join([*one, *two]))
    assert main(["plot", str(file), "--output", str(picture)]) == 0
    assert picture.read_bytes().startswith(magic)


def test_a_plot_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "empty"
    file.touch()
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    assert main(["plot", str(file)]) == 1
    assert capsys.readouterr().err == (
        "cowpreload: plot: needs matplotlib; run: pip install 'cowpreload[plot]'\n"
    )
    monkeypatch.setattr(needs, "find_spec", lambda name: name)
    assert main(["plot", str(file)]) == 1
    assert "holds no reading of a server" in capsys.readouterr().err


def test_a_recording_ends_in_time_though_no_reading_succeeds(tmp_path: Path) -> None:
    """After an odd fault it waited and began anew, and never looked at --for."""

    def odd() -> list[ServerView]:
        raise LookupError("odd")

    end = threading.Event()
    with LineFile(str(tmp_path / "made")) as file:
        assert record._record(odd, file, 0.01, 0.05, end) == 0
    assert (tmp_path / "made").read_bytes() == b""
