"""The warm-up file: its text, what is refused on the disk, and what is added to it."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload.board import Board
from cowpreload.candidates import Candidate, Served
from cowpreload.hosts.keeping import Keeping
from cowpreload.paths import plain_path
from cowpreload.served import Noting
from cowpreload.warmup_file import MOST_BYTES, load
from cowpreload.warmup_lines import compose, parse

# ---- the text --------------------------------------------------------------

PATHS = st.binary(max_size=300).map(lambda rest: b"/" + rest)
# As the board gives them: Latin-1, and nothing that a terminal would obey.
HOSTS = st.text(st.characters(max_codepoint=255)).filter(
    lambda host: host.isprintable() and " " not in host
)


@given(
    st.lists(st.tuples(PATHS, HOSTS, st.integers(1, 10**15 - 1)), max_size=5), st.text()
)
def test_any_page_is_read_as_it_was_written(
    given: list[tuple[bytes, str, int]], application: str
) -> None:
    pages = [Served(plain_path(path), host, count) for path, host, count in given]
    kept = parse(compose(application, (), pages))
    assert sorted(kept.learned, key=repr) == sorted(pages, key=repr)
    assert (kept.refused, kept.bad, kept.own) == ("", (), ())
    assert all(re.fullmatch("/[!-~]*", page.path) for page in kept.learned)
    again = compose(kept.application, kept.own, kept.learned)
    assert parse(again) == kept


@given(PATHS)
def test_a_plain_path_is_the_same_path_to_an_application(path: bytes) -> None:
    plain = plain_path(path)
    assert unquote_to_bytes(plain) == unquote_to_bytes(path)
    assert plain_path(plain.encode()) == plain


HEAD = compose("shop.wsgi", (), ())


@given(st.one_of(st.binary(), st.binary().map(lambda rest: HEAD + rest)))
def test_no_bytes_are_too_damaged_to_be_read(text: bytes) -> None:
    kept = parse(text)
    for page in (*kept.learned, *kept.listed):
        assert re.fullmatch("/[!-~]*", page.path)
        assert page.host.isprintable()
    assert parse(compose("shop.wsgi", kept.own, kept.learned)).refused == ""


def test_an_operator_s_lines_are_respected() -> None:
    long = "/" + "a" * 8192
    own = f"""
# A note on /products/ of ours
/caf\u00e9/a b?x=1,2
  shop.example /lists/\r
# 12 shop.example /heavy/3/
#/off/
{long}
product/7
""".encode()
    kept = parse(HEAD + own + b"     17 shop.example /browse/\n")
    assert kept.learned == (Served("/browse/", "shop.example", 17),)
    assert kept.listed == (
        Served("/caf%C3%A9/a%20b?x=1,2", "", 0),
        Served("/lists/", "shop.example", 0),
        Served(long, "", 0),
    )
    assert kept.off >= {("shop.example", "/heavy/3/"), ("", "/off/")}
    assert kept.bad == (HEAD.count(b"\n") + 8,)
    written = compose(kept.application, kept.own, kept.learned)
    assert all(line.strip() in written for line in own.splitlines())
    assert parse(written).own == kept.own
    # Windows' editors.
    assert parse(b"\xef\xbb\xbf" + written.replace(b"\n", b"\r\n")).own == kept.own


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[Unit]\n", "is no warm-up file"),
        (b"\0" * 100, "is no warm-up file"),
        (b"#: cowpreload warm-up file 2\n/\n", "is of version 2, not 1"),
        (b"#: cowpreload warm-up file \xff\n", "is of version"),
        (b"", ""),
        (b"\n", ""),
    ],
)
def test_what_is_no_warm_up_file_is_not_taken_for_one(text: bytes, why: str) -> None:
    assert parse(text).refused.startswith(why)
    assert bool(why) is bool(parse(text).refused)


# ---- on the disk -----------------------------------------------------------


@pytest.fixture(scope="module")
def board() -> Board:
    """One that has noted what a site's visitors request."""
    board = Board.create()
    visit(board, *[(f"/product/{n}/", "shop.example") for n in range(30)])
    visit(board, *[("/a%20b/%D0%BF", "shop.example")] * 5)
    visit(board, ("/raw/\u00fc", "shop.example"), ("/logout/", "shop.example"))
    visit(board, ("/skipped/1", "shop.example"))
    return board


def visit(board: Board, *pages: tuple[str, str]) -> None:
    noting = Noting(board)
    for path, host in pages:
        assert noting.note(path.encode("latin-1"), host.encode("latin-1"))


def keeping(
    path: Path, application: str = "shop.wsgi", **named: object
) -> tuple[Keeping, list[str]]:
    """A server's, and what it says."""
    said: list[str] = []
    made = Keeping(
        str(path),
        application,
        said.append,
        1.0,
        ("/skipped/",),
        **named,  # type: ignore[arg-type]
    )
    return made, said


LEARNED = [
    Served("/product/0/", "shop.example", 30),
    Served("/a%20b/%D0%BF", "shop.example", 5),
    Served("/raw/%FC", "shop.example", 1),
]


def test_what_was_learned_warms_the_next_start(board: Board, tmp_path: Path) -> None:
    path = tmp_path / "warm"
    first, said = keeping(path)
    assert first.found().candidates == ()
    first.end(board)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(parse(path.read_bytes()).learned) == LEARNED
    second, more = keeping(path)
    assert second.found().candidates == tuple(
        Candidate(each.path, each.host, "file") for each in LEARNED
    )
    assert said + more == []
    assert os.listdir(tmp_path) == ["warm"]


def test_a_prefix_of_the_host_is_part_of_each_path_in_the_file(
    board: Board, tmp_path: Path
) -> None:
    """/export is no name of a page here."""
    path = tmp_path / "warm"
    keeping(path, prefix="/export")[0].end(board)
    found = keeping(path, prefix="/export")[0].found().candidates
    assert found[0].path == "/export/product/0/"
    assert len(found) == 4  # /skipped/ is below the prefix
    found = keeping(path, mounts=["/", "/export"])[0].found().candidates
    assert len(found) == 4


def test_what_is_written_is_added_and_no_request_counts_twice(tmp_path: Path) -> None:
    path, board = tmp_path / "warm", Board.create()
    visit(board, *[("/browse/", "h")] * 3)
    made, _ = keeping(path)
    for _ in range(3):
        made.end(board)
    other = Board.create()  # another server of the same application
    visit(other, ("/browse/", "h"), ("/product/7/", "h"))
    keeping(path)[0].end(other)
    visit(board, ("/product/3/", "h"))
    made.end(board)
    assert parse(path.read_bytes()).learned == (
        Served("/browse/", "h", 4),
        # An example of what is requested now: the other may be gone.
        Served("/product/3/", "h", 2),
    )


def test_an_edit_while_the_server_runs_is_respected(
    board: Board, tmp_path: Path
) -> None:
    path = tmp_path / "warm"
    made, _ = keeping(path)
    made.end(board)
    text = path.read_text()
    text = text.replace("       5 shop.example /a%20b", "# 5 shop.example /a%20b")
    text = text.replace("       1 shop.example /raw/%FC\n", "")
    path.write_text(text + "/mine/\n# a note\n")
    visit(board, ("/a%20b/%D0%BF", "shop.example"), ("/other/", "shop.example"))
    made.end(board)
    text = path.read_text()
    learned = {each.path for each in parse(text.encode()).learned}
    assert learned == {"/product/0/", "/other/"}
    assert "\n/mine/\n# a note\n" in text
    found = keeping(path)[0].found()
    assert found.candidates[0] == Candidate("/mine/", "", "file")
    assert ("/a%20b/%D0%BF", "is switched off in the file") not in found.left_out


@pytest.mark.parametrize("off", ["12 h /heavy/3/", "/%68eavy/7"])
def test_no_way_of_writing_a_path_or_a_host_gets_past_what_is_switched_off(
    tmp_path: Path, off: str
) -> None:
    path, board = tmp_path / "warm", Board.create()
    ways = ["/heavy/3/", "/%68eavy/3/", "//heavy/3", "/%68%65avy/%33/", "/x/../heavy/4"]
    visit(board, *[(way, host) for way in ways for host in ("h", "H", "evil.example")])
    path.write_bytes(HEAD + f"# {off}\n/%68eavy/9\n".encode())
    path.chmod(0o600)
    made, said = keeping(path)
    made.end(board)
    assert parse(path.read_bytes()).learned == ()
    lines = "".join(f"9 {host} {way}\n" for way in ways for host in ("h", "e"))
    path.write_bytes(path.read_bytes() + lines.encode())
    found = made.found()
    assert found.candidates == ()
    assert {why for _, why in found.left_out} == {"is switched off in the file"}
    assert len(list(made.off())) == 1
    assert said == []


def test_a_page_that_is_known_by_its_slugs_can_be_switched_off(tmp_path: Path) -> None:
    path, board = tmp_path / "warm", Board.create()
    visit(board, *[(f"/blog/a-slug-{x}/", "h") for x in "abcdefghijklmnopqrst"])
    visit(board, *[(f"/blog/a-slug-{x}/comments/", "h") for x in "abcdefghijkl"])
    made, _ = keeping(path)
    made.end(board)
    text = path.read_text()
    assert "      20 h /blog/a-slug-a/\n" in text
    path.write_text(text.replace("      20 h /b", "# 20 h /b"))
    visit(board, *[("/blog/a-slug-b/", "h")] * 9)
    made.end(board)
    learned = [each.path for each in parse(path.read_bytes()).learned]
    assert learned == ["/blog/a-slug-a/comments/"]
    few = Board.create()  # too few to be known as slugs: the operator can tell
    visit(few, ("/blog/c-slug/", "h"), ("/blog/d/", "h"), ("/blog/", "h"))
    path.write_text(text + "# /blog/*/\n")
    keeping(path)[0].end(few)
    learned = [each.path for each in parse(path.read_bytes()).learned]
    assert learned == ["/blog/a-slug-a/comments/", "/blog/"]


def test_what_visitors_chose_is_not_requested_as_another_user_than_the_workers(
    tmp_path: Path,
) -> None:
    """As root, mostly: at each start, and in silence."""
    path, board = tmp_path / "warm", Board.create()
    path.write_bytes(HEAD + b"/mine/\n9 h /theirs/\n8 h /too/\n")
    path.chmod(0o600)
    uid = os.geteuid()
    made, said = keeping(path, uid=uid + 1)
    for _ in range(2):
        found = made.found()
        assert found.candidates == (Candidate("/mine/", "", "file"),)
    why = f"the master runs as uid={uid}, the workers as uid={uid + 1}"
    assert found.left_out == (("/theirs/", why), ("/too/", why))
    assert said == [
        f"cow: warmup-file={path}: what visitors have requested stays cold: {why}; "
        "remove the number before a page to make it yours, or run both as one user"
    ]
    visit(board, ("/fresh/", "h"))
    made.end(board)  # kept all the same, for the operator to look at
    assert len(parse(path.read_bytes()).learned) == 3
    same, said = keeping(path, uid=uid)
    assert len(same.found().candidates) == 4
    assert said == []


def test_names_that_nobody_requests_unasked_are_not_requested_from_the_file_either(
    tmp_path: Path,
) -> None:
    path = tmp_path / "warm"
    path.write_bytes(HEAD + b"9 h /cart/clear/\n8 h /skipped/x\n/user/delete\n7 h /a\n")
    found = keeping(path)[0].found()
    assert [each.path for each in found.candidates] == ["/a"]
    assert [each for each, _ in found.left_out] == [
        "/user/delete",
        "/cart/clear/",
        "/skipped/x",
    ]


def test_a_file_does_not_grow_and_forgets_what_nobody_requests(tmp_path: Path) -> None:
    path = tmp_path / "warm"
    old = [Served(f"/old/{letter * 5}", "h", 60) for letter in "abcdefghij" * 2]
    names = itertools.product("xyz", "abcdefgh", "abcdefghijk")
    old += [Served(f"/{''.join(each)}/", "h", 70) for each in names]
    path.write_bytes(compose("shop.wsgi", (), old))
    for _ in range(6):
        board = Board.create()
        for page in ("/", "/fresh/"):
            visit(board, *[(page, "h")] * 6000)
        keeping(path)[0].end(board)
    learned = parse(path.read_bytes()).learned
    assert {each.path for each in learned[:2]} == {"/", "/fresh/"}
    assert len(learned) <= 200
    assert max(each.count for each in learned[2:]) < 10
    assert sum(each.count for each in learned) <= 20_000


def test_a_turn_writes_only_when_there_are_other_pages(tmp_path: Path) -> None:
    path, board = tmp_path / "warm", Board.create()
    made = Keeping(str(path), "shop.wsgi", print, 1e-9)  # its first turns are over
    visit(board, ("/", "h"))
    made.turn(board)
    first = path.stat().st_ino
    visit(board, ("/", "h"))
    made._turn_at = 0
    made.turn(board)
    assert path.stat().st_ino == first
    visit(board, ("/more/", "h"))
    made._turn_at = 0
    made.turn(board)
    assert {each.count for each in parse(path.read_bytes()).learned} == {2, 1}
    late = Keeping(str(path), "shop.wsgi", print, 1000)
    visit(board, ("/late/", "h"))
    late.turn(board)
    assert "/late/" not in path.read_text()


def _link(path: Path) -> None:
    path.with_name("target").write_bytes(HEAD)
    path.symlink_to("target")


def _text(text: bytes, mode: int = 0o600, owner: int = -1) -> object:
    def make(path: Path) -> None:
        path.write_bytes(text)
        path.chmod(mode)
        os.chown(path, owner, -1)

    return make


FOREIGN = pytest.mark.skipif(os.geteuid() != 0, reason="only root can chown")
FAULTS = {
    "link": (_link, "is a symbolic link; name"),
    "pipe": (os.mkfifo, "is no regular file; name"),
    "directory": (Path.mkdir, "is no regular file; name"),
    "group": (_text(HEAD + b"1 h /x\n", 0o660), "can be written by other users; chmod"),
    "others": (_text(HEAD + b"1 h /x\n", 0o606), "can be written by other users; chmo"),
    "damaged": (_text(b"\xff\0PK\3\4" * 50), "is no warm-up file; name another"),
    "version": (_text(b"#: cowpreload warm-up file 7\n"), "is of version 7, not 1; "),
    "application": (
        _text(compose("blog.wsgi", (), [])),
        "is of the application blog.wsgi, not shop.wsgi; name another for each",
    ),
    "large": (_text(HEAD + b"#" * MOST_BYTES), "is larger than 1 MiB; shorten it"),
}


@pytest.mark.parametrize(
    "fault",
    [*FAULTS, pytest.param("owner", marks=FOREIGN)],
)
def test_what_another_may_have_written_is_neither_requested_nor_replaced(
    board: Board, tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "warm"
    owner = _text(HEAD + b"1 h /x\n", owner=1234), "belongs to uid=1234, and its pages"
    make, why = (FAULTS | {"owner": owner})[fault]
    make(path)  # type: ignore[operator]
    before = path.lstat()
    made, said = keeping(path)
    assert made.found().candidates == ()
    made.end(board)
    assert len(said) == 1
    assert said[0].startswith(f"cow: warmup-file={path}: {why}")
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert {*os.listdir(tmp_path)} <= {"warm", "target"}


def test_a_device_and_a_directory_that_is_gone_are_said_once(
    board: Board, tmp_path: Path
) -> None:
    made, said = keeping(Path("/dev/full"))
    made.end(board)
    assert said == ["cow: warmup-file=/dev/full: is no regular file; name another"]
    gone = tmp_path / "gone"
    gone.mkdir()
    made, said = keeping(gone / "warm")
    assert made.found().candidates == ()
    shutil.rmtree(gone)
    for _ in range(2):
        made.end(board)
    assert said == [
        f"cow: warmup-file={gone}/warm: its directory is not there; make it"
    ]
    assert load(str(tmp_path / "a\0b")).fault.startswith("cannot be read (")


FULL = """
import os, sys
from pathlib import Path
from cowpreload.board import Board
from cowpreload.hosts.keeping import Keeping
from cowpreload.served import Noting
path = Path("warm")
os.chdir(sys.argv[1])
board = Board.create()
made = Keeping("warm", "shop.wsgi", print, 1.0)
for n in range(100):
    Noting(board).note(b"/" + b"abcdefghij"[n % 10 : n % 10 + 1] * (n + 1), b"h")
    if n == 3:
        made.end(board)
        before = path.read_bytes()
        filler = open("filler", "wb", buffering=0)
        try:
            while filler.write(b"x" * 512):
                pass
        except OSError:
            pass
for n in range(2):
    made.end(board)
assert path.read_bytes() == before
assert sorted(os.listdir()) == ["filler", "warm"]
filler.close()
os.unlink("filler")
made.end(board)
assert len(path.read_bytes()) > len(before)
"""


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=16k none {tmp_path}"
    shell = ["unshare", "--mount", "sh", "-c"]
    if os.geteuid() or subprocess.run([*shell, mount], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    done = subprocess.run(
        [*shell, f'{mount} && exec {sys.executable} -c "$CODE" {tmp_path}'],
        env=os.environ | {"CODE": FULL},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        f"cow: warmup-file={tmp_path}/warm: cannot be written (no space left on device)"
        "; what was learned is not kept\n"
    )
