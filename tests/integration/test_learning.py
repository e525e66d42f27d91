"""What a running server learns from its traffic, and shows."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Servers, deep
from harness.processes import wait_until
from harness.server import Server

from cowpreload import served
from cowpreload.board import open_board
from cowpreload.cli import main
from cowpreload.shapes import plain_shape
from cowpreload.warmup_lines import parse

AUTO = {"cow-warmup": "auto"}
LOGGED_IN = {"Cookie": "csrftoken=1; sessionid=secret"}
PAGES = {"/", "/product/#/", "/a%20b/%D0%BF"}
# Of 8 KB: longer than either host takes unless it is told to, and than is noted.
LONG = f"/long/{'a' * 8186}"


def shown(server: Server, *arguments: str) -> str:
    return said("warmup", *arguments, str(server.pid))


def said(*arguments: str) -> str:
    """What a command prints, in this process: others test that it is one."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(list(arguments)) == 0
    return printed.getvalue()


def learned(server: Server) -> dict[str, Any]:
    made = json.loads(shown(server, "--json"))
    return {each["shape"]: each for each in made["shapes"]}


def visit(server: Server) -> None:
    """Every kind of request, some of which must not be noted."""
    for number in range(3):
        assert server.get(f"/product/{number}/")[0] == 200
    assert server.get("/a%20b/%D0%BF")[0] == 200
    for path in ("/logout", "/404", "/500", "/sum?n=3"):
        server.get(path)
    assert server.get("/private", headers=LOGGED_IN)[0] == 200
    assert server.get("/private", headers={"Authorization": "Basic eA=="})[0] == 200


@pytest.mark.parametrize(
    "host",
    ["sync", "asgi", "uwsgi", *deep("threaded", "gevent", "uvicorn", "uwsgi-threaded")],
)
def test_pages_that_were_served_are_learned_and_nothing_else(
    servers: Servers, tmp_path: Path, host: str
) -> None:
    options = {**AUTO, "cow-warmup-skip": "/product/9/"}
    if host.startswith("uwsgi"):
        options["buffer-size"] = "65535"
    else:
        options["limit-request-line"] = "0"
    server = servers.on(host, options).wait_serving()
    visit(server)
    assert server.get(LONG)[0] == 200
    assert server.get("/product/9/10")[0] == 200
    # A worker notes after its answer has been read.
    wait_until(lambda: set(learned(server)) >= PAGES, 20, "all pages")
    pages = learned(server)
    assert set(pages) == PAGES
    assert pages["/product/#/"]["count"] == 3
    assert pages["/a%20b/%D0%BF"]["path"] == "/a%20b/%D0%BF"
    assert pages["/"]["host"] == f"127.0.0.1:{server.port}"
    assert "secret" not in server.log
    status = said("status", str(server.pid))
    assert "traffic: 5 kinds of pages in " in status
    assert "warmed at the start: no page" in status  # of no framework
    assert "requests; 2 more carried a login (cow-warmup-private)" in status
    text = shown(server)
    assert "left out: /logout: `logout` ends a session\n" in text
    assert "left out: /product/9/10: warmup-skip\n" in text
    if host == "sync":
        file = tmp_path / "learned.ini"
        assert shown(server, "--write", str(file)) == ""
        assert "cow-warmup = /a%%20b/%%D0%%BF\n" in file.read_text()
        assert shown(server, "--write", str(tmp_path / "warm")) == ""
        kept = parse((tmp_path / "warm").read_bytes())
        assert kept.application == "app"
        assert {plain_shape(each.path) for each in kept.learned} == PAGES


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_pages_behind_a_login_are_learned_where_the_operator_wants_it(
    servers: Servers, host: str
) -> None:
    options = {**AUTO, "cow-warmup-private": "on"}
    server = servers.on(host, options).wait_serving()
    visit(server)
    wait_until(lambda: "/private" in learned(server), 20, "the page")
    assert served.withheld(open_board(server.pid)) == 0
    assert "secret" not in server.log


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_server_that_is_not_asked_to_learn_notes_nothing(
    servers: Servers, host: str
) -> None:
    server = servers.on(host).wait_serving()
    visit(server)
    assert served.noted(open_board(server.pid)) == 0
    assert "no request was noted" in shown(server)


def test_the_hook_of_the_user_s_is_called_too(servers: Servers, tmp_path: Path) -> None:
    """gunicorn has room for one."""
    log = tmp_path / "hooks"
    config = tmp_path / "conf.py"
    config.write_text(
        "def post_request(worker, req, environ, resp):\n"
        f"    open({str(log)!r}, 'a').write(req.path + '\\n')\n"
        "    if req.path == '/raise':\n"
        "        raise ValueError\n"
    )
    server = servers.on("sync", {**AUTO, "config": str(config)}).wait_serving()
    server.get("/raise")
    assert server.get("/after")[0] == 200
    wait_until(lambda: "/after" in learned(server), 20, "the page")
    assert log.read_text().splitlines()[-2:] == ["/raise", "/after"]
