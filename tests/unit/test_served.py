"""What is noted of requests, and what is not; the table that it is noted in."""

from __future__ import annotations

import asyncio
import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cowpreload._core import ffi, lib
from cowpreload.board import Board
from cowpreload.served import Noting, choose, noted, read, withheld
from cowpreload.settings import Settings
from cowpreload.shapes import plain_shape, shapes

PLACES = lib.COW_SERVED_SETS * lib.COW_SERVED_WAYS
HOST = b"shop.example"


def key(path: str, host: bytes = HOST) -> int:
    raw = path.encode("latin-1")
    return int(lib.cow_served_key(raw, len(raw), host, len(host)))


piece = st.sampled_from(
    [
        *("1", "23", "a", "fe", "-", ".", "%", "%20", "%C3%A9", "/", ".png"),
        *("0123456789abcdef", "F" * 15, "0" * 36),
        "123e4567-e89b-12d3-a456-426614174000",
    ]
)
path = st.lists(piece, max_size=6).map(lambda pieces: "/" + "".join(pieces))


@given(path, path)
def test_the_table_and_the_shapes_take_the_same_paths_for_one_page(
    one: str, other: str
) -> None:
    assert (key(one) == key(other)) == (plain_shape(one) == plain_shape(other))


def test_ten_thousand_paths_do_not_crowd_out_the_pages_that_come_again() -> None:
    board = Board.create()
    noting = Noting(board)
    letters = "abcdefghijklmnopqrstuvwxyz"
    requests = 0
    for number in range(10_000):
        word = "".join(letters[number // 26**place % 26] for place in range(3))
        requests += noting.note(f"/blog/my-{word}-post/".encode(), HOST)
        requests += noting.note(f"/product/{number}/".encode(), HOST)
        if number % 50 == 0:
            requests += noting.note(b"/", HOST)
        if number % 500 == 0:  # one request in a thousand
            requests += noting.note(b"/about-us/", HOST)
    pages = read(board)
    assert noted(board) == requests
    assert len(pages) <= PLACES
    made = {each.shape: each for each in shapes(pages)}
    assert set(made) == {"/", "/product/#/", "/blog/*/", "/about-us/"}
    assert made["/product/#/"].count >= 10_000
    assert made["/blog/*/"].count > 5_000
    assert made["/"].count >= 200


@pytest.mark.parametrize(
    ("cookie", "public"),
    [
        ("", True),
        ("csrftoken=x", True),
        ("_ga=GA1.2; _ga_ABC=1;django_language=de ; _gid=3", True),
        ("sessionid=x", False),
        ("_ga=1; sessionid=x", False),
        ("sessionid=x; _ga=1", False),
        ("csrftokens=x", False),
        ("csrftoken", False),
        ("_g=1", False),
        (";;  ", True),
        ("=", False),
    ],
)
def test_only_cookies_that_no_login_is_known_by_are_public(
    cookie: str, public: bool
) -> None:
    raw, board = cookie.encode(), Board.create()
    assert bool(lib.cow_served_public(raw, len(raw))) is public
    assert Noting(board).note(b"/", HOST, raw) is public
    assert (noted(board), withheld(board)) == (int(public), int(not public))


@pytest.mark.parametrize("path", ["", "x", "*", "http://h/", "/" + "a" * 8192])
def test_what_is_no_path_or_too_long_is_not_noted(path: str) -> None:
    board = Board.create()
    assert not Noting(board).note(path.encode(), HOST)
    assert read(board) == []


def test_paths_of_every_kind_come_back_as_they_were() -> None:
    board = Board.create()
    noting = Noting(board)
    paths = ["/a%20b/", "/100%25", "/%D0%BF%D1%80", "/caf\xe9", "/" + "a" * 239]
    for each in paths:
        assert noting.note(each.encode("latin-1"), HOST)
    assert sorted(page.path for page in read(board)) == sorted(paths)
    assert {page.host for page in read(board)} == {"shop.example"}


@pytest.mark.parametrize(
    ("path", "host"),
    [(b"/\x1b[2J", HOST), (b"/\x9b2J", HOST), (b"/\n", HOST), (b"/", b"\x1b]0;x\x07")],
)
def test_what_a_terminal_would_obey_is_not_read(path: bytes, host: bytes) -> None:
    """`cowpreload warmup` prints what anybody has requested."""
    board = Board.create()
    Noting(board).note(path, host)
    assert read(board) == []


def test_a_page_that_was_half_replaced_is_not_read() -> None:
    """Its reader would request a path that nobody has requested."""
    board = Board.create()
    Noting(board).note(b"/one/two/", HOST)
    served = ffi.addressof(board.raw, "served")
    raw = ffi.buffer(served)
    at = bytes(raw).index(b"/one/two/")
    raw[at : at + 4] = b"/two"
    assert read(board) == []


def test_processes_and_threads_note_side_by_side() -> None:
    board = Board.create()

    def work() -> None:
        noting = Noting(board)
        for number in range(3000):
            noting.note(f"/kind{'abcdef'[number % 6]}/{number}/".encode(), HOST)

    pids = []
    for _ in range(2):
        pid = os.fork()
        if not pid:
            work()
            os._exit(0)
        pids.append(pid)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    assert noted(board) == 12_000
    assert {each.shape for each in shapes(read(board))} == {
        f"/kind{letter}/#/" for letter in "abcdef"
    }


PRIVATE = Settings(warmup_private="on")


def after_wsgi(
    environ: dict[str, str], settings: Settings, **changed: Any
) -> list[str]:
    """The paths that are noted after such a request to gunicorn."""
    board = Board.create()
    choose(board, settings)
    request = {"method": "GET", "query": "", "path": "/page", **changed}
    status = request.pop("status_code", 200)
    response = SimpleNamespace(status_code=status) if status else None
    given = {"SCRIPT_NAME": "", "HTTP_HOST": "h", **environ}
    Noting(board).after_wsgi(None, SimpleNamespace(**request), given, response)
    return [page.path for page in read(board)]


@pytest.mark.parametrize(
    ("environ", "changed", "paths"),
    [
        ({}, {}, ["/page"]),
        ({"SCRIPT_NAME": "/shop"}, {"path": "/shop/page"}, ["/page"]),
        ({}, {"method": "POST"}, []),
        ({}, {"method": "HEAD"}, []),
        ({}, {"query": "q=name"}, []),
        ({}, {"status_code": 404}, []),
        ({}, {"status_code": None}, []),
        ({}, {"path": None}, []),
        ({"HTTP_AUTHORIZATION": "Basic x"}, {}, []),
        ({"HTTP_COOKIE": "sessionid=x"}, {}, []),
        ({"HTTP_COOKIE": "csrftoken=x"}, {}, ["/page"]),
    ],
)
def test_what_is_noted_of_a_request_to_gunicorn(
    environ: dict[str, str], changed: dict[str, Any], paths: list[str]
) -> None:
    assert after_wsgi(environ, Settings(), **changed) == paths


@pytest.mark.parametrize("header", ["HTTP_AUTHORIZATION", "HTTP_COOKIE"])
def test_a_request_with_a_login_is_noted_where_the_operator_wants_it(
    header: str,
) -> None:
    assert after_wsgi({header: "secret"}, PRIVATE) == ["/page"]
    headers = [(header.removeprefix("HTTP_").lower().encode(), b"secret")]
    assert around_asgi(headers, PRIVATE) == ["/a%20page"]


def around_asgi(
    headers: list[tuple[bytes, bytes]],
    settings: Settings,
    **changed: Any,
) -> list[str]:
    """The paths that are noted around such a call of an ASGI application."""
    board = Board.create()
    choose(board, settings)
    status = changed.pop("status", 200)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/a page",
        "raw_path": b"/a%20page",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"h"), *headers],
        **changed,
    }
    sent = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def call() -> None:
        await Noting(board).around_asgi(app)(scope, None, send)

    asyncio.run(call())
    assert sent == ["http.response.start", "http.response.body"]
    return [page.path for page in read(board)]


@pytest.mark.parametrize(
    ("headers", "changed", "paths"),
    [
        ([], {}, ["/a%20page"]),
        ([], {"raw_path": None}, ["/a%20page"]),
        ([], {"root_path": "/r", "raw_path": b"/r/page"}, ["/page"]),
        ([], {"method": "POST"}, []),
        ([], {"query_string": b"q=name"}, []),
        ([], {"status": 404}, []),
        ([], {"type": "websocket"}, []),
        ([(b"authorization", b"Basic x")], {}, []),
        ([(b"cookie", b"_ga=1"), (b"cookie", b"sessionid=x")], {}, []),
        ([(b"cookie", b"_ga=1"), (b"cookie", b"csrftoken=x")], {}, ["/a%20page"]),
    ],
)
def test_what_is_noted_of_a_request_to_an_asgi_application(
    headers: list[tuple[bytes, bytes]], changed: dict[str, Any], paths: list[str]
) -> None:
    assert around_asgi(headers, Settings(), **changed) == paths


def test_a_busy_worker_notes_one_request_in_eight() -> None:
    board = Board.create()
    noting = Noting(board)
    request = SimpleNamespace(method="GET", query="", path="/")
    for _ in range(1024 + 800):
        noting.after_wsgi(
            None, request, {"SCRIPT_NAME": ""}, SimpleNamespace(status_code=200)
        )
    assert noted(board) == 1024 + 100
