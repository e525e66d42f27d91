"""Pages behind a login, warmed as a user; what is learned of them from traffic."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
from conftest import PROGRAMS, QUICK, Servers, deep, needs_uwsgi, once, run
from harness.load import Load
from harness.server import Server

from cowpreload.immortal import WHY_NOT

VISITOR = {"Cookie": f"sessionid={'visitor' * 5}"}
AUTO = {"cow-warmup": "auto", "cow-warmup-repeat": "1", "cow-warmup-user": "warm"}
MEMBERS = [f"/members/{name}/{number}/" for number in range(20) for name in "abc"]


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> dict[str, str]:
    """The environment of a site of members, with a database of its own."""

    def fill(directory: Path) -> None:
        environ = {**os.environ, "SITE_DB": str(directory / "db")}
        done = run("members.py", cwd=PROGRAMS, env=environ)
        assert done.returncode == 0, done.stderr

    made = once(tmp_path_factory, "members", fill)
    shutil.copy(made / "db", tmp_path / "db")
    return {"SITE_DB": str(tmp_path / "db")}


def nobody_has_logged_in(server: Server, site: dict[str, str]) -> bool:
    """No session but the visitor's, no signal, no time of a login."""
    with contextlib.closing(sqlite3.connect(site["SITE_DB"])) as database:
        found = database.execute(
            "select (select count(*) from django_session), count(last_login) "
            "from auth_user"
        ).fetchone()
    return (*found, "user_logged_in" in server.log) == (1, 0, False)


def maker(server: Server, path: str) -> int:
    """The process that made what this page needs."""
    status, body = server.get(path, headers=VISITOR)
    assert (status, body.split()[2]) == (200, b"visitor")
    return int(body.split()[1])


@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("asgi")])
def test_a_page_behind_a_login_is_warmed_as_the_user(
    servers: Servers, site: dict[str, str], host: str
) -> None:
    options = {**AUTO, "cow-warmup-skip": "/fails/"}
    server = servers.on(host, options, workers=1, app="members", environ=site)
    server.wait_serving()
    assert maker(server, "/account/") == server.pid
    assert server.get("/login/")[1].split()[1] == str(server.pid).encode()
    assert "cow: warmup auto routes=4 warmed=3 dropped=0 left-out=1 " in server.log
    assert " warmup-requests=4 findings=0 " in server.wait_log("cow: preload ")
    assert nobody_has_logged_in(server, site)
    assert "superuser" not in server.log


def test_without_a_user_a_page_behind_a_login_is_each_worker_s_to_make(
    servers: Servers, site: dict[str, str]
) -> None:
    """The control of the one above; a user who is not there is no user."""
    options = {**AUTO, "cow-warmup-user": "nobody", "cow-warmup-skip": "/fails/"}
    server = servers.on("sync", options, workers=1, app="members", environ=site)
    server.wait_serving()
    assert maker(server, "/account/") in server.workers()
    assert server.log.count("cow: warmup-user=nobody: there is no such user; ") == 1
    assert "cow: warmup path=/account/ dropped: answered 302" in server.log


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_listed_page_that_fails_for_the_user_ends_the_start_and_his_session(
    servers: Servers, site: dict[str, str], host: str
) -> None:
    """It would fail in every worker; a session that is left is a way in."""
    environ = {**site, "COW_WARMUP": "/account/,/fails/"}
    options = {"cow-warmup-user": "boss"}
    server = servers.on(host, options, app="members", environ=environ)
    assert server.wait_exit() == 1
    assert "cow: warmup=/fails/ (as warmup-user): answered 500; " in server.log
    assert "cow: warmup-user=boss: is a superuser; " in server.log
    assert "path=/account/ status=302" not in server.log
    assert nobody_has_logged_in(server, site)


def signed_in_load(server: Server) -> Load:
    return Load(
        server.port, MEMBERS, seconds=120, concurrency=2, pause=0.03, headers=VISITOR
    ).start()


@pytest.mark.skipif(bool(WHY_NOT), reason="the heap is mortal here")
# Here: a page behind a login, warmed as the user at the start.
@pytest.mark.parametrize("host", deep("sync", "uwsgi"))
def test_what_members_request_is_warmed_anew_as_the_user(
    servers: Servers, site: dict[str, str], host: str
) -> None:
    options = {**QUICK, **AUTO, "cow-warmup-worth": "4M", "cow-warmup-private": "on"}
    server = servers.on(host, options, workers=2, app="members", environ=site)
    server.wait_serving(workers=2)
    load = signed_in_load(server)
    try:
        server.wait_log("cow: warmed anew pages=3 dropped=0 ", 60)
        server.wait_log("cow: warmed anew: all workers are replaced", 60)
    finally:
        report = load.stop()
    assert (report.failed, report.wrong) == (0, 0), report.errors[:5]
    assert maker(server, "/members/b/7/") == server.pid
    assert nobody_has_logged_in(server, site)
    assert "/members/" not in server.log
    assert "visitor" not in server.log


@pytest.mark.skipif(bool(WHY_NOT), reason="the heap is mortal here")
@pytest.mark.parametrize(
    "host", ["sync", pytest.param("uwsgi", marks=pytest.mark.deep)]
)
def test_a_database_that_answers_nothing_keeps_no_master_waiting(
    servers: Servers, site: dict[str, str], host: str
) -> None:
    """Neither one that starts nor one that serves: no alarm ends a wait in C."""
    options = {**QUICK, **AUTO, "cow-warmup-worth": "4M", "cow-warmup-private": "on"}
    options["cow-warmup-timeout"] = "1"
    without = "cow: warmup-user=warm: no answer within 1 s; pages are requested without"
    with contextlib.closing(sqlite3.connect(f"{site['SITE_DB']}.gate")) as gate:
        gate.execute("begin exclusive")
        server = servers.on(host, options, workers=2, app="members", environ=site)
        server.wait_serving(workers=2)
        assert server.log.count(without) == 1
        load = signed_in_load(server)
        try:
            server.wait_log("cow: warmed anew pages=0: none survived the trial", 60)
        finally:
            load.stop()
        assert server.log.count(without) == 2
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0


@pytest.mark.deep
@needs_uwsgi
@pytest.mark.parametrize("answers", [True, False])
def test_an_application_with_an_interpreter_of_its_own_has_its_user(
    servers: Servers, site: dict[str, str], answers: bool
) -> None:
    ini = {**AUTO, "mount": ["/a=app.py", "/b=members:application"], "processes": "1"}
    ini |= {"manage-script-name": "true", "cow-warmup-timeout": "2"}
    with contextlib.closing(sqlite3.connect(f"{site['SITE_DB']}.gate")) as gate:
        if not answers:
            gate.execute("begin exclusive")
        server = servers.uwsgi(ini, app=None, environ=site).wait_serving("/b/login/")
        without = "cow: warmup-user=warm: no answer within 2 s; pages are requested"
        assert server.log.count(without) == (not answers)
    if answers:
        assert maker(server, "/b/account/") == server.pid
    assert nobody_has_logged_in(server, site)


@pytest.mark.parametrize(
    ("host", "more"),
    [
        ("sync", {"cow-warmup": "auto"}),
        pytest.param("sync", {}, marks=pytest.mark.deep, id="file-alone"),
        # Its master warms nothing anew; what to set is said all the same.
        pytest.param(
            "uwsgi",
            {"cow-warmup": "auto", "log-master": "true"},
            marks=pytest.mark.deep,
        ),
    ],
)
def test_what_a_login_keeps_from_being_learned_is_said_once(
    servers: Servers,
    site: dict[str, str],
    tmp_path: Path,
    host: str,
    more: dict[str, str],
) -> None:
    options = {**QUICK, "cow-warmup-worth": "4M", **more}
    options["cow-warmup-file"] = str(tmp_path / "warm")
    server = servers.on(host, options, workers=2, app="members", environ=site)
    server.wait_serving(workers=2)
    load = signed_in_load(server)
    try:
        line = server.wait_log("cow: warmup-private=off: ", 60)
    finally:
        load.stop()
    found = re.search(r"(\d+) of (\d+) requests carried a login", line)
    assert found
    assert 50 <= int(found[1]) <= int(found[2])
    assert "cow-warmup-private=on with cow-warmup-user (Django)" in line
    assert server.log.count("cow: warmup-private=off: ") == 1


def test_the_command_shows_what_the_user_would_warm(site: dict[str, str]) -> None:
    environ = {**os.environ, **site, "COW_WARMUP_USER": "warm"}
    environ["COW_WARMUP_SKIP"] = "/fails/"
    done = run("-m", "cowpreload", "warmup", "members", cwd=PROGRAMS, env=environ)
    assert re.search(r"302 .*  /account/  dropped: answered 302\n", done.stdout)
    assert re.search(r"200 .*  /account/ \(as warmup-user\)\n", done.stdout)
    assert "3 of 3 would be warmed, 1 were left out; " in done.stdout


@pytest.mark.deep
def test_a_database_that_answers_nothing_keeps_no_command_waiting(
    site: dict[str, str],
) -> None:
    environ = {**os.environ, **site, "COW_WARMUP_USER": "warm"}
    environ["COW_WARMUP_TIMEOUT"] = "1"
    with contextlib.closing(sqlite3.connect(f"{site['SITE_DB']}.gate")) as gate:
        gate.execute("begin exclusive")
        done = run("-m", "cowpreload", "warmup", "members", cwd=PROGRAMS, env=environ)
    assert "cow: warmup-user=warm: no answer within 1 s; pages are" in done.stderr
    assert "(as warmup-user)" not in done.stdout
