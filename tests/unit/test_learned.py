"""What is said of the traffic that was noted."""

from __future__ import annotations

import configparser
import json
import os
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from cowpreload import about
from cowpreload.about import About
from cowpreload.board import Board
from cowpreload.candidates import Served, Shape
from cowpreload.cli import learned, main
from cowpreload.errors import NotFoundError
from cowpreload.report.learned import (
    learned_json,
    learned_line,
    learned_list,
    learned_table,
)
from cowpreload.warmup_lines import compose, parse

PAGES = [
    Shape("/", "/", "h", 811),
    Shape("/product/#/", "/product/17/", "h", 40),
    Shape("/a%20b", "/a%20b", "h", 2),
]
LEFT = {"/logout/": "`logout` ends a session"}


def test_the_table_of_what_was_learned() -> None:
    assert learned_table(900, PAGES, LEFT).splitlines() == [
        "traffic: 3 kinds of pages in 900 noted requests",
        "requests  path",
        "     811  /",
        "      40  /product/17/  (/product/#/)",
        "       2  /a%20b",
        "left out: /logout/: `logout` ends a session",
    ]
    assert learned_line(0, []) == ""
    carried = "; 7 more carried a login (cow-warmup-private)"
    assert learned_line(900, PAGES, 7).endswith(f"900 noted requests{carried}")
    assert learned_table(0, [], {}, 7).endswith(f"in 0 noted requests{carried}")
    assert "no request was noted" in learned_table(0, [], {})
    assert "  other" in learned_table(900, [*PAGES, Shape("/", "/", "other", 1)], {})


def test_json_has_all_of_it() -> None:
    made = json.loads(learned_json(900, PAGES, LEFT, 7))
    assert (made["noted"], made["withheld"]) == (900, 7)
    assert [each["path"] for each in made["left_out"]] == ["/logout/"]
    assert made["shapes"][1] == {
        "shape": "/product/#/",
        "path": "/product/17/",
        "host": "h",
        "count": 40,
    }


def test_the_list_can_be_read_as_the_setting(tmp_path: Path) -> None:
    pages = [*PAGES, Shape("/", "/", "other", 1), Shape("/o'k", "/o'k", "h", 1)]
    found: dict[str, object] = {}
    exec(learned_list(pages, ini=False), found)
    assert found["cow_warmup"] == ["/", "/product/17/", "/a%20b", "/o'k"]
    text = learned_list(pages, ini=True)
    assert text.splitlines()[2] == "cow-warmup = /a%%20b"
    parser = configparser.ConfigParser(strict=False)
    parser.read_string("[uwsgi]\n" + text)


@pytest.mark.parametrize(
    "path",
    [
        "/@(exec://touch${IFS}x)",
        "/$(HOME)",
        "/%(pidfile)",
        "/%28/a,/b",
        "/caf\xe9 \n[uwsgi]",
    ],
)
def test_what_a_visitor_requested_tells_uwsgi_nothing_in_an_ini(path: str) -> None:
    """uWSGI runs the program that a value names so."""
    text = learned_list([Shape(path, path, "h", 1)], ini=True)
    value = text.removeprefix("cow-warmup = ").removesuffix("\n")
    assert not set(value) & set("$@()\n, ")
    assert not value.replace("%%", "").count("%")
    given = value.replace("%%", "%")
    assert unquote_to_bytes(given) == unquote_to_bytes(path.encode("latin-1"))


NOTED = [Served("/", "h", 811), Served("/product/17/", "h", 40)]
TOLD = About("shop.wsgi", "/shop", ("/shop/report",))
OURS = os.geteuid(), os.getegid()


def test_the_list_is_its_owner_s_and_replaces_nothing_but_itself(
    tmp_path: Path,
) -> None:
    """Not the configuration that it is meant for."""
    others = {"a.ini": "[uwsgi]\ncow-warmup = /\n", "a.py": "workers = 4\n"}
    for name, text in others.items():
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(NotFoundError, match=r"write=.*: has more than this"):
            learned._write_list(str(path), PAGES)
        assert path.read_text() == text
        path.unlink()
        for pages in (PAGES[:1], PAGES):
            learned._write_list(str(path), pages)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text() == learned_list(PAGES, ini=name == "a.ini")
    assert sorted(os.listdir(tmp_path)) == sorted(others)
    with pytest.raises(NotFoundError, match=r"write=.*: its directory is not there"):
        learned._write_list(str(tmp_path / "gone" / "warmup.py"), PAGES)


def test_a_warm_up_file_that_is_written_keeps_what_is_the_operator_s(
    tmp_path: Path,
) -> None:
    """A page that was switched off was requested again at the next start."""
    path = tmp_path / "warm"
    learned._write_file(str(path), NOTED, TOLD, OURS)
    assert path.stat().st_mode & 0o777 == 0o600
    own = "/mine/\n# a note\n# 811 h /shop/\n"
    path.write_text(path.read_text().replace("     811 h /shop/\n", own))
    with path.open("a") as file:
        file.write("7 h /shop/old/\n999 h /shop/product/3/\n")
    for _ in range(2):
        noted = [*NOTED, Served("/report/1", "h", 5), Served("/%2e/", "h", 5)]
        learned._write_file(str(path), noted, TOLD, OURS)
        kept = parse(path.read_bytes())
        assert kept.application == "shop.wsgi"
        assert list(kept.own) == own.encode().splitlines()
        assert kept.learned == (
            Served("/shop/product/17/", "h", 40),
            Served("/shop/old/", "h", 7),
        )
    assert os.listdir(tmp_path) == ["warm"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"before", "is no warm-up file; name another, or remove it"),
        (compose("blog.wsgi", (), ()), "is of the application blog.wsgi, not shop.w"),
    ],
)
def test_what_is_no_warm_up_file_of_the_server_s_is_not_replaced(
    tmp_path: Path, text: bytes, why: str
) -> None:
    path = tmp_path / "warm"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(NotFoundError, match=f"write=.*: {why}"):
        learned._write_file(str(path), NOTED, TOLD, OURS)
    assert path.read_bytes() == text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes for others")
def test_what_root_writes_is_the_server_s(tmp_path: Path) -> None:
    """It could not read root's."""
    path = tmp_path / "warm"
    for _ in range(2):
        learned._write_file(str(path), NOTED, TOLD, (1234, 1235))
        about = path.stat()
        assert (about.st_uid, about.st_gid) == (1234, 1235)
        assert about.st_mode & 0o777 == 0o600
    with pytest.raises(NotFoundError, match="belongs to uid=1234, and its pages would"):
        learned._write_file(str(path), NOTED, TOLD, (1236, 1235))


def test_what_was_learned_below_a_prefix_is_shown_and_written_as_it_was_requested(
    tmp_path: Path,
) -> None:
    noted = [Served("/x \xfc", "h", 2), Served("/report/1", "h", 1)]
    told = About("shop.wsgi", "/shop", ("/shop/report",))
    found, left_out = learned._parted(noted, told)
    assert [each.path for each in found] == ["/shop/x%20%FC"]
    assert left_out == {"/shop/report/1": "warmup-skip"}
    learned._write_list(str(tmp_path / "x.py"), found)
    assert '"/shop/x%20%FC"' in (tmp_path / "x.py").read_text().replace("'", '"')


def test_what_a_server_says_of_itself_fits_on_its_board() -> None:
    board = Board.create()
    assert about.read(board) == About()
    told = About("shop.wsgi", "/shop", ("/a", "/caf\xe9"))
    about.write(board, told)
    assert about.read(board) == told
    about.write(board, About("shop.wsgi", "/shop", ("/" + "a" * 9000,)))
    assert about.read(board) == About("shop.wsgi", "/shop", None)
    board.raw.about.length = 10  # just being written
    assert about.read(board) == About()


def test_a_file_that_would_not_be_tried_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`cowpreload warmup PID --file FILE` said nothing, and did not look at it."""
    assert main(["warmup", "17", "--file", "x"]) != 0
    assert "file=x: is tried with an application" in capsys.readouterr().err
