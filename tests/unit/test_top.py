"""`cowpreload top`: its screen on recorded views, its keys, and without a terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from harness.views import server, slot, told

from cowpreload.cli import main, top, who
from cowpreload.errors import NotFoundError
from cowpreload.view import ServerView

needs_textual = pytest.mark.skipif(find_spec("textual") is None, reason="no textual")
OVER = slot(2, 60.5, generation=4, strikes=2, last=told(generation=3))
BUSY = server(slot(1), OVER)
NEXT = replace(
    server(slot(1, served=310), slot(2, generation=5, last=told(generation=4))),
    at=1e9 + 2,
)


def on_screen(
    views: list[list[ServerView]],
    act: Callable[[Any, Any], Awaitable[None]],
    size: tuple[int, int] = (100, 24),
) -> None:
    """Show these views, one reading after the other, and act on what is shown."""
    from cowpreload.cli.top_screen import Top

    left = list(views)
    app = Top(lambda: left.pop(0) if len(left) > 1 else left[0], 3600.0)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await act(app, pilot)

    asyncio.run(run())


def text_of(app: Any) -> list[str]:
    """The lines of the screen."""
    width, height = app.size
    strips = app.screen._compositor.render_strips(app.size)
    assert len(strips) == height
    return ["".join(part.text for part in strip)[:width].rstrip() for strip in strips]


async def again(app: Any, pilot: Any) -> list[str]:
    """Take the next reading; the screen then."""
    app._begin_reading()
    await app.workers.wait_for_complete()
    await pilot.pause()
    return text_of(app)


@needs_textual
def test_a_screen_of_80_columns_has_bars_limits_and_what_happens() -> None:
    async def act(app: Any, pilot: Any) -> None:
        lines = text_of(app)
        assert lines[0] == "gunicorn 27.0.1 shop.wsgi, master 7000, up 2h03m"
        assert lines[1].startswith(
            "total PSS 109.0 of 512 (21.3% of the control group)"
        )
        rows = {line.split()[0]: line for line in lines[4:6]}
        assert "█░" in rows["1"]
        assert "60.5!" in rows["2"]
        assert rows["1"].count("│") == 2  # soft and hard
        assert all(len(line) <= 80 for line in lines)
        lines = await again(app, pilot)
        happened = "worker 2, now generation 5: the last recycled by max-private"
        assert any(happened in line for line in lines), lines
        assert " 10.0 " in next(line for line in lines if line.split()[:1] == ["1"])

    on_screen([[BUSY], [NEXT]], act, (80, 24))


@needs_textual
def test_many_workers_of_two_servers_keep_their_order_and_the_chosen_one() -> None:
    views = [
        server(*(slot(number, number / 2) for number in range(1, 33))),
        server(slot(1, 9.0), slot(2, 3.0), pid=8000),
    ]

    async def act(app: Any, pilot: Any) -> None:
        assert text_of(app)[2].startswith("b gunicorn")
        assert list(app._slots)[:2] == ["7000:1", "7000:2"]
        await pilot.press("down", "s")
        assert list(app._slots)[:2] == ["7000:32", "7000:31"]
        assert list(app._slots).index("8000:1") == 15  # 9.0 MiB, after 32/2 to 9.5
        assert any("private↓" in line for line in text_of(app))
        assert app._chosen_key() == "7000:32"
        await pilot.press("down", "down")
        await again(app, pilot)
        assert app._chosen_key() == "7000:30"

    on_screen([views], act, (80, 24))


@needs_textual
def test_a_worker_is_recycled_after_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    from cowpreload.cli import top_screen

    calls: list[tuple[int, ...]] = []

    def renew(*given: int) -> str:
        calls.append(given)
        return "worker 2 is asked to leave after its requests"

    monkeypatch.setattr(top_screen, "renew", renew)

    async def act(app: Any, pilot: Any) -> None:
        await pilot.press("down")
        for key, asked in (("n", []), ("y", [(7000, 2, 4)])):
            await pilot.press("r")
            await pilot.pause()
            assert any("Recycle worker 2 (pid 7002" in line for line in text_of(app))
            assert calls == []
            await pilot.press(key)
            await pilot.pause()
            said = any("is asked to leave" in line for line in text_of(app))
            assert (calls, said) == (asked, bool(asked))

    on_screen([[BUSY]], act)


@needs_textual
def test_why_runs_nothing_of_the_directory_that_top_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may be in anybody's: `python -m` looks for modules there first."""
    (tmp_path / "cowpreload").mkdir()
    (tmp_path / "cowpreload" / "__init__.py").touch()
    (tmp_path / "cowpreload" / "__main__.py").write_text("print('theirs')")
    monkeypatch.chdir(tmp_path)

    async def act(app: Any, pilot: Any) -> None:
        await pilot.press("w")
        until = time.monotonic() + 30
        while "why 7001 ..." in (shown := "\n".join(text_of(app))):
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        assert "theirs" not in shown
        assert "pid=7001" in shown

    on_screen([[BUSY]], act)


@needs_textual
def test_a_narrow_terminal_and_no_server_at_all() -> None:
    async def narrow(app: Any, pilot: Any) -> None:
        lines = text_of(app)
        row = next(line for line in lines if line.split()[:1] == ["2"])
        assert "60.5!" in row
        assert "█" in row
        assert any("no server runs" in line for line in await again(app, pilot))
        await pilot.press("r", "w", "s")  # nothing is chosen

    on_screen([[BUSY], []], narrow, (40, 16))


def readings(*views: list[ServerView]) -> Callable[[str], top.Take]:
    """In the place of `taker`: these, then the end of the server."""
    left = list(views)

    def take() -> list[ServerView]:
        if not left:
            raise NotFoundError("pid=7000: holds no board")
        return left.pop(0)

    return lambda who: take


def test_in_a_pipe_tables_are_written_with_what_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cowpreload.cli import record

    monkeypatch.setattr(record, "taker", readings([BUSY], [BUSY], [NEXT]))
    assert main(["top", "--interval", "0.1"]) == 0
    told = capsys.readouterr()
    assert told.out.count("master 7000: gunicorn") == 2
    assert "worker 2, now generation 5: the last recycled by max-private" in told.out
    assert "\x1b" not in told.out
    assert told.err == "top: the server has ended\n"


def test_without_textual_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cowpreload.cli import record

    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(top, "find_spec", lambda name: None)
    monkeypatch.setattr(record, "taker", readings([BUSY], [BUSY]))
    assert main(["top"]) == 0
    screen = capsys.readouterr().out
    assert screen.startswith("\x1b[H\x1b[2Jmaster 7000")
    assert screen.endswith(
        "the live view needs textual; run: pip install 'cowpreload[top]'\n"
    )


def test_no_server_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cowpreload.servers.find_masters", list)
    monkeypatch.setattr(who, "of_other_versions", list)
    assert main(["top"]) == 1
    assert capsys.readouterr().err == f"cowpreload: {who.NONE_FOUND}\n"
