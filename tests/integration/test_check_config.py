"""`gunicorn --check-config` says what a start would say."""

from __future__ import annotations

import pytest
from conftest import Servers

BAD = [
    ["-k", "cow", "--cow-max-private", "200X", "--cow-strikes", "0"],
    ["-k", "cow_tornado"],
]


@pytest.mark.parametrize("arguments", BAD, ids=["settings", "class"])
def test_what_the_start_refuses_is_refused_by_the_check_too(
    servers: Servers, arguments: list[str]
) -> None:
    started = servers.gunicorn(*arguments)
    checked = servers.gunicorn(*arguments, "--check-config")
    assert (started.wait_exit(), checked.wait_exit()) == (1, 1)
    assert "Error: " in started.log
    assert checked.log == started.log


@pytest.mark.parametrize(
    ("kind", "app"), [("cow", "app:asgi"), ("cow_asgi", "app:application")]
)
def test_an_application_that_the_class_cannot_serve_is_refused_by_the_check_too(
    servers: Servers, kind: str, app: str
) -> None:
    started = servers.gunicorn("-k", kind, app=app)
    checked = servers.gunicorn("-k", kind, "--check-config", app=app)
    assert (started.wait_exit(), checked.wait_exit()) == (1, 1)
    assert checked.log.startswith(f"\nError: worker_class={kind}: ")
    assert checked.log.strip() in started.log


@pytest.mark.parametrize("kind", ["cow", "sync"])
def test_a_good_configuration_passes_the_check(servers: Servers, kind: str) -> None:
    """Without a warm up: a check must not request pages."""
    options = ["--cow-warmup", "/raise"] if kind == "cow" else []
    server = servers.gunicorn("-k", kind, *options, "--check-config")
    assert server.wait_exit() == 0
    assert server.log == ""
