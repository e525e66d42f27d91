"""The session that `warmup-user` gets for a warm up, with every engine of Django's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAMS, run

from cowpreload.candidates import AutoReport, Candidate, Tried
from cowpreload.interface import Interface
from cowpreload.warmup_user import signed_in, why
from cowpreload.warmup_visits import Manner

WHERE = "cow: warmup-user="
WITHOUT = "; pages are requested without a user"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("sessions")
    done = run("sessions.py", str(directory), cwd=PROGRAMS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ENGINES = ["db", "cached_db", "cache", "file", "signed_cookies"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_page_sees_the_user_until_the_session_is_removed(
    made: Any, engine: str
) -> None:
    found = made[engine]
    assert (found["name"], found["seen"]) == ("member", "warm@example.org")
    assert found["said"] == []
    assert found["left"] == 0
    if engine != "signed_cookies":  # which are kept by nobody but the visitor
        assert found["there"] > 0
        assert found["after"] == "AnonymousUser"


@pytest.mark.parametrize("engine", ENGINES[:-1])
def test_a_session_that_was_not_removed_expires_by_itself(
    made: Any, engine: str
) -> None:
    """A master that is killed removes nothing."""
    (said,) = made[engine]["expired"]
    assert "SESSION_ENGINE does not give its session back" in said


def test_nobody_has_logged_in(made: Any) -> None:
    assert made["logins"] == {"signals": 0, "last": ["None", "None"]}


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("nobody", "nobody@example.org: there is no such user"),
        ("inactive", "gone@example.org: is not active"),
        ("unknown", "warm@example.org: no backend of AUTHENTICATION_BACKENDS knows"),
        ("not kept", "warm@example.org: raised UpdateError"),
        ("no table", "warm@example.org: raised OperationalError: no such table: "),
    ],
)
def test_a_user_who_cannot_be_had_is_said_once_and_none_is_used(
    made: Any, case: str, why: str
) -> None:
    (said,) = made[case]["said"]
    assert said.startswith(WHERE + why)
    assert said.endswith(WITHOUT)
    assert made[case]["name"] == ""


def test_without_django_it_is_said(tmp_path: Path) -> None:
    done = run(
        "-c",
        "from cowpreload.warmup_user import signed_in\n"
        "with signed_in('warm', print, 1.0) as cookie: assert cookie == ''\n",
    )
    why = "warm: the application is none of Django's: use warmup-header"
    assert done.stdout == f"{WHERE}{why}{WITHOUT}\n"


def test_without_a_name_nothing_is_done() -> None:
    with signed_in(None, pytest.fail, 1.0) as cookie:
        assert cookie == ""


def test_a_page_that_was_warmed_one_way_is_none_that_was_dropped() -> None:
    answers = [
        ("/login/", 200, 302),
        ("/account/", 302, 200),
        ("/staff/", 302, 403),
        ("/broken/", 200, 500),
    ]
    tried = [
        Tried(Candidate(path, user=bool(user)), status, dropped=f"answered {status}")
        if status != 200
        else Tried(Candidate(path, user=bool(user)), status)
        for path, *statuses in answers
        for user, status in enumerate(statuses)
    ]
    report = AutoReport(tuple(tried), left_out={"route": 1}, requests=3, seconds=0.5)
    assert [each.path for each in report.warmed()] == [
        "/login/",
        "/account/",
        "/broken/",
    ]
    assert report.lines() == [
        "cow: warmup path=/login/,/account/ (as warmup-user),/broken/ warmed",
        "cow: warmup path=/staff/ (as warmup-user) dropped: answered 403",
        "cow: warmup path=/broken/ (as warmup-user) dropped: answered 500",
        "cow: warmup auto routes=5 warmed=3 dropped=1 left-out=1 seconds=0.50",
    ]


def test_no_log_line_and_no_repr_gives_a_login_away() -> None:
    """A session's file has its key in its path; reporters of errors keep the locals of
    each frame."""
    key = "0123456789abcdef" * 2
    text = why(FileNotFoundError(2, "No such file", f"/var/sessions/sessionid{key}"))
    assert "No such file" in text
    assert key[-20:] not in text
    headers = (("Authorization", "Basic c2VjcmV0"),)
    manner = Manner(Interface.WSGI, "", "h", headers, True, f"sessionid={key}")
    assert "c2VjcmV0" not in repr(manner)
    assert key not in repr(manner)
