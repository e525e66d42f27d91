"""What others may have written, any bytes: figures or a refusal of ours, in time.

Boards, the system's files, settings. `make fuzz` runs these with many examples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cowpreload import about, served, servers, warmings
from cowpreload._core import ffi, lib
from cowpreload.board import Board
from cowpreload.capacity import capacity, meminfo
from cowpreload.errors import SettingsError
from cowpreload.metrics import families
from cowpreload.report.exposition import exposition
from cowpreload.report.learned import learned_line
from cowpreload.report.live import events
from cowpreload.report.status import status_text
from cowpreload.report.status_json import status_json
from cowpreload.report.warmed import warmed_lines
from cowpreload.settings import DECLARED
from cowpreload.settings_given import read
from cowpreload.shapes import shapes
from cowpreload.units import parse_size
from cowpreload.view import ServerView

# What takes milliseconds is tried less often, here and with many examples.
SELDOM = settings(max_examples=settings.default.max_examples // 4, deadline=None)

SIZE = ffi.sizeof("struct cow_board")
PLACES = ("tickets", "warmings", "frozen", "counts", "slot", "end", "served", "about")
Write = tuple[str, int, bytes]
WRITES = st.lists(
    st.tuples(
        st.sampled_from(PLACES),
        st.integers(0, 4096),
        st.one_of(st.binary(max_size=64), st.just(b"\xff" * 512)),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    made = Board.create("gunicorn")
    yield made
    made.close()


def scribble(board: Board, highest: int, writes: Sequence[Write]) -> None:
    """Nothing but what is written, and what opening a board has checked."""
    raw = board.raw
    ffi.memmove(raw, b"\0" * SIZE, SIZE)
    whole = ffi.buffer(raw, SIZE)
    for place, offset, data in writes:
        at = ffi.offsetof("struct cow_board", place) + offset
        whole[at : at + len(data)] = data
    raw.slots, raw.highest = 1 << 20, highest  # `slots` is compared once, at the start
    raw.made_at_ms = lib.cow_now_ms()


def texts(board: Board, view: ServerView) -> list[str]:
    """All that is shown of a server."""
    pages = shapes(served.read(board))
    noted = learned_line(served.noted(board), pages, served.withheld(board))
    warmed = warmed_lines(warmings.read(board), view.totals.pss)
    return [status_text(view), status_text(view, 40), noted, warmed]


@SELDOM
@given(st.integers(0, 40), WRITES)
@example(1 << 20, [])
def test_any_words_on_a_board_are_shown(
    board: Board, highest: int, writes: list[Write]
) -> None:
    scribble(board, 0, ())
    before = servers.look(board, older_than=60)
    scribble(board, highest, writes)
    view = servers.look(board, older_than=60)
    json.loads(status_json([view], 0.0))
    exposition(families([view]))
    shown = [*texts(board, view), *events([before], [view]), *events([view], [before])]
    assert all(line.isprintable() for text in shown for line in text.split("\n"))


@settings(deadline=None)
@given(st.binary(max_size=32))
@example(b"\x1b]0;owned\x07\x1b[2J")
@example(b"two\nlines")
def test_what_a_server_calls_itself_is_no_command_to_a_terminal(
    board: Board, name: bytes
) -> None:
    """Root's `status` printed what another user's process had put there."""
    scribble(board, 0, ())
    board.raw.host = name[:31]
    about.write(board, about.About(application=name.decode("latin-1")))
    view = servers.look(board)
    assert view.master.host.isprintable()
    assert view.master.application.isprintable()


@given(st.binary(max_size=200))
@example(b"[" * 8188)
@example(b'{"skip":' * 1000)
@example(b'{"application": "a", "prefix": "", "skip": 7}')
@example(b'{"application": ' + b"9" * 5000 + b"}")
def test_any_text_about_a_server_is_read(board: Board, text: bytes) -> None:
    """Brackets in brackets ended `status` with a RecursionError."""
    scribble(board, 0, ())
    raw = board.raw.about
    ffi.memmove(raw.text, text, len(text))
    raw.length = 0xFFFFFFFF if len(text) % 2 else len(text)
    found = about.read(board)
    assert isinstance(found.application, str)


CGROUP = st.one_of(
    st.binary(max_size=60),
    st.builds("{}:{}:{}".format, st.integers(), st.text(max_size=9), st.text()).map(
        lambda text: text.encode("utf-8", "surrogateescape")
    ),
    st.text("/.\0a:", max_size=300).map(lambda text: f"0::{text}".encode()),
)
FIGURE = st.one_of(st.binary(max_size=30), st.integers().map(lambda n: b"%d\n" % n))


@SELDOM
@given(CGROUP, FIGURE, FIGURE)
@example(b"0::/a", b"9" * 5000, b"max")
@example(b"0::/" + b"a" * 4000, b"1", b"1")
@example(b"0::/a", b"1", b"MemTotal: many kB\n")
def test_any_text_of_a_control_group_gives_a_capacity(
    group: bytes, limit: bytes, machine: bytes
) -> None:
    """ "Never raises": it did, of a figure that was none."""
    with TemporaryDirectory() as name:
        proc, groups = Path(name, "proc"), Path(name, "cgroup")
        (proc / "7").mkdir(parents=True)
        (groups / "a").mkdir(parents=True)
        (proc / "7" / "cgroup").write_bytes(group)
        (proc / "meminfo").write_bytes(machine)
        (groups / "cgroup.controllers").write_bytes(b"memory\n")
        (groups / "memory.max").write_bytes(limit)
        (groups / "a" / "memory.max").write_bytes(limit)
        found = capacity(7, proc, groups)
        assert found.limit >= 0
        assert meminfo("MemTotal", proc) >= 0


@given(st.text())
@example("9" * 5000)
@example("1" * 4301 + "K")
def test_any_text_is_a_size_or_refused(text: str) -> None:
    said, size = "", 1
    try:
        size = parse_size(text)
    except ValueError as error:
        said = str(error)
    assert 0 < size < 1 << 62
    assert said == "" or ";" in said  # what to do


GIVEN: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=40),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(st.text(max_size=20), max_size=3),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([d.attribute for d in DECLARED]), GIVEN))
@example({"max_recycling": 10**400})
@example({"strikes": "9" * 5000})
def test_any_value_of_a_setting_is_taken_or_refused(given: dict[str, Any]) -> None:
    try:
        read(given, environ={})
    except SettingsError as error:
        for fault in error.faults:
            assert ";" in fault
