"""The warm up of a real server: pages that hang, signals meanwhile, what is said."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from conftest import Servers, deep
from harness.processes import wait_until

QUICK = {"cow-warmup-timeout": "0.5", "cow-warmup-repeat": "1"}


@pytest.mark.parametrize(
    ("host", "path", "frame"),
    [
        ("sync", "/stream", "in never_ending"),
        ("sync", "/catch", "in catch_all"),
        ("sync", "/native", "in wait"),
        ("asgi", "/await", "in asgi"),
        ("uwsgi", "/sleep", "in wait"),
        *deep(("sync", "/sleep", "in wait"), ("sync", "/alarm", "in wait")),
        *deep(("asgi", "/stream", "in asgi"), ("asgi", "/thread", "in wait")),
        *deep(("uwsgi", "/native", "in wait")),
    ],
)
def test_a_page_that_never_answers_ends_the_start_and_is_named(
    servers: Servers, host: str, path: str, frame: str
) -> None:
    """In a worker the host would kill it; nobody watches over a master."""
    server = servers.on(host, {**QUICK, "cow-warmup": path}, app="slow_pages")
    assert server.wait_exit(60) == 1
    assert f"warmup={path}" in server.log
    assert frame in server.log
    if path not in ("/native", "/alarm"):  # ended by faulthandler alone
        assert f"cow: warmup={path}: given up after 0.5 s" in server.log
    if path not in ("/native", "/alarm", "/catch", "/thread"):
        assert (
            f"cow: warmup={path}: no answer within 0.5 s; mend the page" in server.log
        )


@pytest.mark.parametrize("host", ["sync", "asgi", "uwsgi"])
def test_a_page_that_takes_longer_than_a_second_is_named(
    servers: Servers, host: str
) -> None:
    options = {"cow-warmup": "/short", "cow-warmup-repeat": "1"}
    server = servers.on(host, options, app="slow_pages").wait_serving()
    assert "cow: warmup=/short: takes longer than 1 s; the start ends at" in server.log
    assert re.search(r"cow: warmup=/short: took \d\.\d s", server.log)


@pytest.mark.parametrize(
    ("host", "path", "number"),
    [
        ("sync", "/sleep", signal.SIGTERM),
        ("sync", "/sleep", signal.SIGINT),
        ("sync", "/once", signal.SIGQUIT),
        ("asgi", "/await", signal.SIGTERM),
    ],
)
def test_a_master_told_to_end_in_the_warm_up_takes_its_pid_file_along(
    servers: Servers, tmp_path: Path, host: str, path: str, number: int
) -> None:
    pidfile = tmp_path / "pid"
    options = {
        "cow-warmup": path,
        "cow-warmup-repeat": "1",  # /once catches what it is told by, once
        "pid": str(pidfile),
    }
    server = servers.on(host, options, app="slow_pages")
    server.wait_log("begun " + path)
    assert pidfile.read_text().strip() == str(server.pid)
    server.signal(number)
    assert server.wait_exit() == 0
    assert not pidfile.exists()
    assert "Traceback" not in server.log
    assert "Shutting down: Master" in server.log


def test_a_failed_warm_up_leaves_no_pid_file(servers: Servers, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    server = servers.on("sync", {"cow-warmup": "/raise", "pid": str(pidfile)})
    assert server.wait_exit() == 1
    assert not pidfile.exists()


@pytest.mark.parametrize("hook", ["1", "0"])
def test_signals_in_the_warm_up_wait_until_gunicorn_takes_them(
    servers: Servers, hook: str
) -> None:
    """Plain gunicorn is killed by a HUP before its handlers are set."""
    environ = {
        "COWPRELOAD_STARTUP": hook,
        "COW_WARMUP": "/short",
        "COW_WARMUP_REPEAT": "1",
    }
    server = servers.gunicorn(
        "-k", "egg:cowpreload#cow", app="slow_pages", environ=environ
    )
    server.wait_log("begun /short")
    server.signal(signal.SIGHUP)
    server.signal(signal.SIGUSR1)
    server.wait_log("Hang up: Master")
    wait_until(lambda: server.log.count("Booting worker") == 2, 20, "the reload")
    server.wait_serving()


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_page_that_raises_is_shown_with_its_traceback(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, {"cow-warmup": "/raise"})
    assert server.wait_exit() == 1
    assert re.search(r'app\.py", line \d+, in answer\n +raise Zero', server.log)
    assert "cow: warmup=/raise: raised ZeroDivisionError: the page is" in server.log


MOUNTS = {
    "mount": ["/a=app.py", "/b=slow_pages.py"],
    "manage-script-name": "true",
    "cow-warmup-repeat": "1",
}


@pytest.mark.parametrize("default", [True, False], ids=["default", "no-default-app"])
def test_a_path_below_no_mount_is_warmed_where_uwsgi_serves_it_or_is_named(
    servers: Servers, default: bool
) -> None:
    """uWSGI gives it to the application that it loaded first, unless told not to."""
    ini = {**MOUNTS, "cow-warmup": ["/a/me", "/b/", "/c"]}
    if not default:
        ini["no-default-app"] = "true"
    server = servers.uwsgi(ini, app=None).wait_serving(path="/a/")
    named = "cow: warm-up path=/c: no mount serves it; " in server.log
    assert named is not default
    assert f"warmup-requests={2 + default} " in server.log
    assert server.get("/c")[0] == (200 if default else 500)


def test_a_page_that_never_answers_in_an_interpreter_of_its_own_ends_the_start(
    servers: Servers,
) -> None:
    """No signal reaches Python there."""
    ini = {**MOUNTS, **QUICK, "cow-warmup": ["/a/", "/b/sleep"]}
    server = servers.uwsgi(ini, app=None)
    assert server.wait_exit() == 1
    assert "begun /sleep" in server.log
    assert re.search(r"line \d+ in warmup=/b/sleep", server.log)


def test_a_page_that_needs_a_dirty_worker_is_told_why_there_is_none(
    servers: Servers,
) -> None:
    """gunicorn starts them after the warm up."""
    server = servers.gunicorn("-c", "dirty.py", "--cow-warmup", "/with", app="dirty")
    assert server.wait_exit() == 1
    assert "cow: warmup=/with: raised DirtyError: " in server.log
    assert "cow: dirty_apps: gunicorn starts dirty workers after the warm up" in (
        server.log
    )


def test_a_page_may_do_without_a_dirty_worker_in_the_warm_up(servers: Servers) -> None:
    server = servers.gunicorn("-c", "dirty.py", "--cow-warmup", "/without", app="dirty")
    server.wait_serving("/without")
    assert server.get("/with") == (200, b"42")


@pytest.mark.parametrize("host", ["sync", "asgi", "uwsgi"])
def test_a_page_behind_a_login_is_warmed_with_a_header(
    servers: Servers, host: str
) -> None:
    """Out of the environment, two of them; nothing of their values is logged."""
    environ = {
        "COW_WARMUP_HEADER": "Cookie: session=s3cret\nX-Token: s3cret",
        "COW_WARMUP": "/login?ids=1,2,/me",
        "COW_PATH": "/usr/share/cows",
    }
    options = {} if host == "uwsgi" else {"log-level": "debug"}
    server = servers.on(host, options, app="login", environ=environ)
    server.wait_serving()
    assert server.get("/login?ids=1,2")[0] == 403
    assert "warmup-requests=4 " in server.log
    assert "cow: warm-up path" not in server.log  # that is, none answered 403
    assert "warmup-header=Cookie,X-Token " in server.log
    assert "cow: no settings of ours: COW_PATH" in server.log
    assert "s3cret" not in server.log
    if host != "uwsgi":
        assert "cow_warmup_header: ..." in server.log  # gunicorn's own dump


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_slip_in_the_environment_is_named_like_one_in_a_file(
    servers: Servers, host: str
) -> None:
    server = servers.on(host, environ={"COW_MAX_PRIVAT": "200M"})
    assert server.wait_exit() == 1
    assert "COW_MAX_PRIVAT: no such setting; did you mean COW_MAX_PRIVATE?" in (
        server.log
    )


@pytest.mark.parametrize(
    ("number", "path"), [(signal.SIGTERM, "/sleep"), (signal.SIGHUP, "/short")]
)
def test_gunicorn_23_takes_signals_in_the_warm_up_too(
    servers: Servers, gunicorn23: Path, tmp_path: Path, number: int, path: str
) -> None:
    """Its queue of signals is another one, and its SIGCHLD would reap ours."""
    pidfile = tmp_path / "pid"
    server = servers.gunicorn(
        "-k", "cow", "--pid", str(pidfile), "--cow-warmup", path,
        "--graceful-timeout", "2",
        app="slow_pages", environ={"PYTHONPATH": str(gunicorn23)},
    )  # fmt: skip
    server.wait_log("begun " + path)
    server.signal(number)
    if number == signal.SIGHUP:
        server.wait_log("Hang up: Master")
        server.wait_serving()
    else:
        assert server.wait_exit() == 0
    assert pidfile.exists() is (number == signal.SIGHUP)
    assert "Starting gunicorn 23.0.0" in server.log
