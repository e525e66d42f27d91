"""Applications under a worker class that cannot serve them; those that it can."""

from __future__ import annotations

from http.client import RemoteDisconnected

import pytest
from conftest import Servers

WRONG = [
    ("cow", "app:asgi", "the application app.asgi is ASGI; use cow_asgi"),
    ("cow_asgi", "app:application", "the application app.application is WSGI; use cow"),
    ("cow_asgi", "frameworks:Asgi2", "frameworks.Asgi2 is ASGI 2; use cow_uvicorn"),
]


@pytest.mark.parametrize("warmup", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(("kind", "app", "text"), WRONG)
def test_an_application_that_would_answer_500_for_ever_ends_the_start(
    servers: Servers, kind: str, app: str, text: str, warmup: bool
) -> None:
    options = ["--cow-warmup", "/"] if warmup else []
    server = servers.gunicorn("-k", kind, *options, app=app)
    assert server.wait_exit() == 1
    assert f"Error: worker_class={kind}: " in server.log
    assert text in server.log


@pytest.mark.parametrize(("ours", "theirs"), [("cow", "sync"), ("cow_asgi", "asgi")])
def test_without_us_it_answers_500(servers: Servers, ours: str, theirs: str) -> None:
    """The control: what is refused did not work."""
    for kind, app, _ in WRONG:
        if kind == ours:
            server = servers.gunicorn("-k", theirs, app=app)
            server.wait_log("Booting worker")
            assert server.get("/")[0] == 500


def test_asgi_under_uwsgi_ends_the_start(servers: Servers) -> None:
    server = servers.uwsgi({"callable": "asgi"})
    assert server.wait_exit() == 1
    assert "cow: application=app.asgi: is ASGI, and uWSGI speaks WSGI alone" in (
        server.log
    )


def test_without_us_uwsgi_answers_no_asgi_request(servers: Servers) -> None:
    server = servers.uwsgi({"callable": "asgi"}, plugin=False)
    server.wait_log("spawned uWSGI worker")
    with pytest.raises(RemoteDisconnected):
        server.get("/")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cow", "django_wsgi"),
        ("cow_asgi", "django_asgi"),
        ("cow", "flask"),
        ("cow_asgi", "fastapi"),
        ("cow_asgi", "plain_asgi"),
        ("cow_uvicorn", "Asgi2"),
    ],
)
def test_what_works_is_warmed_and_served(
    servers: Servers, kind: str, name: str
) -> None:
    if name in ("flask", "fastapi"):
        pytest.importorskip(name)
    if kind == "cow_uvicorn":
        pytest.importorskip("uvicorn_worker")
    server = servers.gunicorn(
        "-k", kind, "--cow-warmup", "/", "--cow-fork-safety", "off",
        app=f"frameworks:{name}",
    ).wait_serving()  # fmt: skip
    assert "warmup-requests=2 " in server.log
