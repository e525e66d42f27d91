"""Bad input on real servers: refused at start, with every fault and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Servers

BOTH = ["sync", "uwsgi"]


@pytest.mark.parametrize("host", BOTH)
def test_all_faults_of_a_configuration_are_listed_at_once(
    servers: Servers, host: str
) -> None:
    options = {
        "cow-max-private": "200X",
        "cow-check-interval": "0",
        "cow-warmup": "shop",
        "cow-exit": "slow",
    }
    server = servers.on(host, options)
    assert server.wait_exit() == 1
    for fault in (
        "max-private=200X: is no size; ",
        "check-interval=0: is too low; ",
        "warmup=shop: does not begin with a slash; write /shop",
        "exit=slow: is not known; write fast or normal",
    ):
        assert fault in server.log
    assert "Traceback" not in server.log


@pytest.mark.parametrize("host", BOTH)
def test_a_limit_that_is_no_size_is_refused(servers: Servers, host: str) -> None:
    server = servers.on(host, environ={"COW_MAX_PRIVATE": "-1"})
    assert server.wait_exit() == 1
    # gunicorn takes it as its option's default.
    assert re.search(r"(COW_MAX_PRIVATE|max-private)=-1: ", server.log)


@pytest.mark.parametrize("host", BOTH)
def test_variables_that_are_no_slip_of_the_pen_refuse_no_start(
    servers: Servers, host: str
) -> None:
    """An empty one, as compose files write it, and one of the user's own."""
    environ = {"COW_MAX_PRIVATE": "", "COW_EXIT": "", "COW_WORKERS": "4"}
    server = servers.on(host, environ=environ).wait_serving()
    assert "max-private=unset " in server.log
    assert "no settings of ours: COW_WORKERS" in server.log


@pytest.mark.parametrize("host", BOTH)
def test_a_soft_limit_above_the_hard_one_is_refused(
    servers: Servers, host: str
) -> None:
    options = {"cow-max-private": "300M", "cow-max-private-hard": "200M"}
    server = servers.on(host, options)
    assert server.wait_exit() == 1
    assert "max-private=300MiB: is above max-private-hard=200MiB; " in server.log


def test_a_setting_in_raw_env_is_named_as_without_effect(servers: Servers) -> None:
    """gunicorn sets those variables after our settings were read."""
    given = ["--env", "COW_MAX_PRIVATE=200M", "--env", "COW_OF_MINE=1"]
    server = servers.gunicorn("-k", "cow", *given).wait_serving()
    assert "max-private=unset " in server.log
    assert "cow: raw_env: COW_MAX_PRIVATE: no effect, " in server.log


def test_unknown_names_in_gunicorn_conf_are_shown_their_nearest(
    servers: Servers, tmp_path: Path
) -> None:
    config = tmp_path / "conf.py"
    config.write_text("cow_max_privat = '200M'\ncow_strike = 3\nworker_class = 'cow'\n")
    server = servers.gunicorn("--config", str(config))
    assert server.wait_exit() == 1
    assert (
        "cow_max_privat: no such setting; did you mean cow_max_private?" in server.log
    )
    assert "cow_strike: no such setting; did you mean cow_strikes?" in server.log


def test_unknown_options_in_the_ini_are_shown_their_nearest(servers: Servers) -> None:
    server = servers.uwsgi({"cow-max-privat": "200M", "cow_strike": "3"})
    assert server.wait_exit() == 1
    assert (
        "cow-max-privat: no such setting; did you mean cow-max-private?" in server.log
    )
    assert "cow-strike: no such setting; did you mean cow-strikes?" in server.log


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/raise", "warmup=/raise: raised ZeroDivisionError: the page is broken"),
        ("/500", "warmup=/500: answered 500"),
    ],
)
def test_a_warm_up_that_fails_stops_the_start(
    servers: Servers, host: str, path: str, text: str
) -> None:
    server = servers.on(host, {"cow-warmup": path})
    assert server.wait_exit() == 1
    assert text in server.log
    if host == "sync":
        assert "Listening at" not in server.log


@pytest.mark.parametrize("host", BOTH)
def test_a_warm_up_that_answers_404_is_a_warning(servers: Servers, host: str) -> None:
    server = servers.on(host, {"cow-warmup": "/404"}).wait_serving()
    assert "cow: warm-up path=/404 status=404" in server.log


@pytest.mark.parametrize("ours", [True, False], ids=["cow", "without-us"])
@pytest.mark.parametrize("host", BOTH)
def test_an_application_that_does_not_import_ends_as_without_us(
    servers: Servers, host: str, ours: bool
) -> None:
    environ = {"BREAK": "import"}
    if host == "uwsgi":
        server = servers.uwsgi({"processes": "2"}, environ=environ, plugin=ours)
    else:
        kind = "cow" if ours else "sync"
        server = servers.gunicorn("-k", kind, "--preload", environ=environ)
    assert server.wait_exit() == (22 if host == "uwsgi" else 1)
    assert "ImportError: the application does not import" in server.log


@pytest.mark.parametrize("host", BOTH)
def test_more_workers_than_slots_are_refused(servers: Servers, host: str) -> None:
    server = servers.on(host, workers=1025)
    assert server.wait_exit() == 1
    name = "processes" if host == "uwsgi" else "workers"
    assert f"{name}=1025: the board has 1024 slots; " in server.log


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("lazy-apps", "true", "lazy-apps=true: each worker would load its own"),
        ("master", "false", "master=false: only a master can fork"),
        ("async", "10", "async, gevent or loop: uWSGI drops the requests"),
    ],
)
def test_what_does_not_fit_on_uwsgi_is_refused(
    servers: Servers, key: str, value: str, text: str
) -> None:
    server = servers.uwsgi({"processes": "2", key: value})
    assert server.wait_exit() == 1
    assert text in server.log


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-k", "cow_tornado"], "worker_class=cow_tornado: .*; use cow"),
        (["-k", "cow", "--cow-worker", "tornado"], "cow-worker=tornado: .*; use cow"),
        (
            ["-k", "cow", "--cow-worker", "eventlet"],
            r"cow-worker=eventlet: does not load \(.*\); gunicorn .* knows asgi, gev",
        ),
        (["-k", "cow", "--cow-worker", "egg:cowpreload#no"], "no: does not load"),
        (["-k", "cow", "--cow-worker", "os.path"], "is no worker class of gunicorn's"),
        (["-k", "cow", "--cow-worker", "cow_asgi"], "is ours already"),
    ],
)
def test_a_worker_class_that_cannot_be_ours_is_refused_with_its_reason(
    servers: Servers, arguments: list[str], text: str
) -> None:
    server = servers.gunicorn(*arguments)
    assert server.wait_exit() == 1
    assert re.search(f"Error: .*{text}", server.log)
    assert "Traceback" not in server.log


FOUND = {
    "thread": r"thread name=poller runs=.*app\.py:\d+\(.*\) started-by=.*app\.py",
    "connection": r"fork-safety connection peer=127\.0\.0\.1:\d+ transport=tcp",
    "file": r"fork-safety file path=.*\.open fd=\d+: ",
    "lock": r"fork-safety lock path=.*\.lock kind=FLOCK ADVISORY WRITE: ",
}


@pytest.mark.parametrize("host", BOTH)
def test_what_does_not_survive_the_fork_is_found(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    """A warning by default, the end of the start under strict."""
    environ = {"BREAK": ",".join(FOUND), "EXIT_LOG": str(tmp_path / "exit")}
    server = servers.on(host, environ=environ).wait_serving()
    for broken, text in FOUND.items():
        assert re.search(text, server.log), broken
    found = server.log.count("cow: fork-safety ")
    server.kill()
    server = servers.on(host, {"cow-fork-safety": "strict"}, environ=environ)
    assert server.wait_exit() == 1
    assert f"fork-safety=strict: {found} findings; " in server.log
    server = servers.on(host, {"cow-fork-safety": "off"}, environ=environ)
    assert "cow: fork-safety" not in server.wait_serving().log
