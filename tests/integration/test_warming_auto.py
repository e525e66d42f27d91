"""cow-warmup=auto on real servers: pages that misbehave, in the trial or in the master.

One server start has all the pages of programs/misbehaving.py.
"""

from __future__ import annotations

import re
import signal
import socket
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import Servers, deep, needs_uwsgi
from harness.processes import children, wait_until
from harness.server import Server

from cowpreload import _core, warmings
from cowpreload.board import open_board
from cowpreload.candidates import Served
from cowpreload.warmup_lines import compose

# What programs/misbehaving.py is made of. To import them takes each process of
# pytest-xdist a second.
if not all(map(find_spec, ("flask", "fastapi"))):
    pytest.skip("no flask, no fastapi beside this interpreter", allow_module_level=True)

QUICK = {"cow-warmup": "auto", "cow-warmup-timeout": "0.5"}
# The first application has the main interpreter, the second one of its own.
MOUNTED = {"mount": ["/a=app.py", "/b=misbehaving.py"], "manage-script-name": "true"}
HOSTS = ["sync", "asgi", "uwsgi"]
LONG = f"/{'l' * 8191}"  # 8 KB
FINE = {"/", "/plain", "/a b", "/100%", "/ümlaut", "/last", "/brief-thread", LONG}
DROPPED = {
    "/leave": "ended the process with code 3",
    "/leave-in-c": "ended the process with code 5",
    "/fault": "ended the process by SIGSEGV",
    "/raise": "answered 500|raised ZeroDivisionError: the page is broken",
    "/end": "raised SystemExit: 7",
    "/leap": "raised CancelledError",
    "/generator": "raised GeneratorExit",
    "/thread": r"leaves thread name=Thread-\d",
    "/connection": r"leaves connection peer=127\.0\.0\.1:\d+ transport=tcp",
    "/file": r"leaves file path=\S+/left fd=\d+",
    "/child": r"leaves process pid=\d+",
    "/memory": "keeps 200MiB at each request",
    "/fails": "answered 500",
    "/login": "answered 302",
    "/secret": "answered 403",
}


def asked(server: Server, who: str) -> list[str]:
    return re.findall(rf"^asked {who} (.*)$", server.log, re.MULTILINE)


def dropped(server: Server) -> dict[str, str]:
    """Why, by path."""
    found = {}
    lines = re.findall(r"cow: warmup path=(.*) dropped: (.*)$", server.log, re.M)
    for paths, reason in lines:
        found |= dict.fromkeys(paths.split(","), reason)
    return found


@pytest.mark.parametrize("host", ["sync", "uwsgi", *deep("asgi")])
def test_a_page_that_misbehaves_in_the_trial_is_dropped_and_costs_itself_alone(
    servers: Servers, tmp_path: Path, host: str
) -> None:
    """Without a trial, each of them would end, stop or spoil the master."""
    pages = ",".join(each[1:] for each in (*FINE, *DROPPED))
    environ = {"LEFT_FILE": str(tmp_path / "left"), "PAGES": pages}
    options = {"cow-warmup": "auto", "cow-warmup-repeat": "1"}
    server = servers.on(host, options, workers=1, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    reasons = dropped(server)
    assert set(reasons) == set(DROPPED)
    for path, reason in DROPPED.items():
        assert re.match(reason, reasons[path]), path
    assert set(asked(server, "master")) == FINE
    tried = asked(server, "trial")
    assert set(tried) == {*FINE, *DROPPED}
    assert tried.count("/memory") == 2  # what it takes again, it keeps
    out = 0 if host == "asgi" else 1  # Flask's /logout
    sums = f"routes={23 + out} warmed=8 dropped=15 left-out={out} "
    assert f"cow: warmup auto {sums}" in server.log
    assert " warmup-requests=8 findings=0 " in server.wait_log("cow: preload ")
    (start,) = warmings.read(open_board(server.pid))
    assert (start.pages, start.requests) == ((("route", 8),), 8)


@pytest.mark.parametrize("host", ["sync", *deep("asgi", "uwsgi")])
def test_a_page_that_hangs_in_the_trial_costs_its_time_limit(
    servers: Servers, host: str
) -> None:
    """C code that does not return can be interrupted by nothing but a kill."""
    environ = {"PAGES": "hang,native,last"}
    server = servers.on(host, QUICK, workers=1, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    assert dropped(server) == dict.fromkeys(
        ["/hang", "/native"], "no answer within 0.5 s"
    )
    assert asked(server, "master") == ["/last"] * 2


@pytest.mark.deep
@pytest.mark.parametrize("where", ["trial", "master"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_page_that_takes_500_mb_does_not_make_the_master_large(
    servers: Servers, host: str, where: str
) -> None:
    environ = {"PAGES": "memory,brief-memory,last", "MISBEHAVE_IN": where}
    environ |= {"MEMORY": str(500 << 20)}
    if where == "master":  # what it keeps there, and not in the trial, nobody knows
        environ["PAGES"] = "brief-memory,last"
    options = {"cow-warmup": "auto"}
    server = servers.on(host, options, workers=1, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    keeps = {"/memory": "keeps 500MiB at each request"}
    assert dropped(server) == (keeps if where == "trial" else {})
    assert set(asked(server, "master")) == {"/brief-memory", "/last"}
    assert _core.take_reading(server.pid).rss < 200 << 20


@needs_uwsgi
def test_a_lock_of_uwsgis_that_a_page_holds_at_its_end_is_free_again(
    servers: Servers,
) -> None:
    """Each worker waited for such a lock for ever."""
    ini = {**QUICK, "sharedarea": "1"}
    environ = {"PAGES": "lock,last"}
    server = servers.uwsgi(ini, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    assert dropped(server) == {"/lock": "ended the process by SIGKILL"}
    assert server.get("/lock")[0] == 200


IN_MASTER = "plain,hang,raise,end,leap,generator,thread,connection,fails,login,last"


@pytest.mark.parametrize("host", ["asgi", "uwsgi", *deep("threaded")])
def test_a_page_that_misbehaves_in_the_master_alone_is_given_up_and_the_server_starts(
    servers: Servers, host: str
) -> None:
    """A listed one would refuse the start."""
    environ = {"MISBEHAVE_IN": "master", "PAGES": IN_MASTER}
    server = servers.on(host, QUICK, workers=1, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    leaps = {"/end", "/leap", "/generator"}
    assert set(dropped(server)) == {"/hang", "/raise", "/fails", "/login", *leaps}
    assert asked(server, "master").count("/last") == 2
    assert re.search("cow: warmup auto routes=.* warmed=4 dropped=7 ", server.log)
    assert "fork-safety thread name=Thread-1" in server.log  # the audit's to say
    assert "fork-safety connection " in server.log
    if host == "asgi":  # a thread still hangs there
        server.signal(signal.SIGTERM)
        server.wait_exit(60)


def test_a_trial_under_gevent_leaves_no_pipe_in_the_master(servers: Servers) -> None:
    """What it patches waits for its loop: to close a descriptor even."""
    environ = {"PAGES": "plain,last"}
    server = servers.on("gevent", QUICK, workers=1, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    assert " warmed=2 dropped=0 " in server.log
    assert " findings=0 " in server.wait_log("cow: preload ")


def test_a_master_with_a_thread_tries_and_warms(servers: Servers) -> None:
    """Python warns of forks of such a process."""
    environ = {"AT_IMPORT": "thread", "PAGES": "plain,last", "PYTHONWARNINGS": "always"}
    server = servers.on("sync", QUICK, workers=1, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    assert " warmed=2 dropped=0 " in server.log
    # At gunicorn's own fork alone, from 3.12 on.
    assert server.log.count("use of fork() may lead to deadlocks") <= 1


class Line:
    """A server that remembers what came on each connection."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            self.said.append(b"")
            number = len(self.said) - 1
            arguments = (connection, number)
            threading.Thread(target=self._read, args=arguments, daemon=True).start()

    def _read(self, connection: socket.socket, number: int) -> None:
        with connection:
            while text := connection.recv(4096):
                self.said[number] += text


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_connection_of_the_master_is_not_used_by_the_trial(
    servers: Servers, host: str
) -> None:
    """Two processes on one connection break its protocol: the trial is a worker in what
    before_fork closes and after_fork opens."""
    line = Line()
    environ = {
        "AT_IMPORT": "connection",
        "PAGES": "plain,last",
        "PORT": str(line.port),
    }
    server = servers.on(host, QUICK, workers=1, app="misbehaving", environ=environ)
    server.wait_serving("/last")
    assert " warmed=2 dropped=0 " in server.log

    def speakers() -> list[set[bytes]]:
        """Who spoke, by connection; that of the import says nothing."""
        return [set(each.split()) for each in list(line.said)]

    three = "the trial, the master and the worker"
    wait_until(lambda: len(set().union(*speakers())) == 3, 20, three)
    assert max(map(len, speakers())) == 1


def test_a_master_told_to_end_in_the_trial_ends_its_child_too(
    servers: Servers, tmp_path: Path
) -> None:
    pidfile = tmp_path / "pid"
    options = {"cow-warmup": "auto", "pid": str(pidfile)}
    environ = {"PAGES": "hang"}
    server = servers.on("sync", options, app="misbehaving", environ=environ)
    server.wait_log("asked trial /hang")
    (child,) = children(server.pid)
    server.signal(signal.SIGTERM)
    assert server.wait_exit(20) == 0
    assert not Path(f"/proc/{child}").exists()
    assert not pidfile.exists()
    assert "Traceback" not in server.log


@pytest.mark.parametrize(
    ("number", "mount"), [(signal.SIGTERM, "/b"), (signal.SIGHUP, "")]
)
def test_what_uwsgi_is_told_in_the_trial_is_done_when_it_serves(
    servers: Servers, number: int, mount: str
) -> None:
    """uWSGI ignores both while it loads; a trial may double that time."""
    ini = {"cow-warmup": "auto", "cow-warmup-timeout": "600"}
    environ = {"PAGES": "hang,plain"}
    app = None if mount else "misbehaving"
    ini |= MOUNTED if mount else {}
    server = servers.uwsgi(ini, app=app, environ=environ)
    server.wait_log("asked trial /hang")
    server.signal(number)
    pages = f"{mount}/hang,{mount}/plain"
    server.wait_log(f"cow: warmup path={pages} dropped: not tried: a signal waits")
    if number == signal.SIGTERM:
        server.wait_exit(60)
    else:
        wait_until(lambda: server.log.count("asked trial /hang") == 2, 60, "a reload")


def test_a_reload_asked_for_in_the_trial_does_not_wait_for_its_end(
    servers: Servers,
) -> None:
    options = {"cow-warmup": "auto", "cow-warmup-timeout": "600"}
    environ = {"PAGES": "hang,plain"}
    server = servers.on("sync", options, app="misbehaving", environ=environ)
    server.wait_log("asked trial /hang")
    server.signal(signal.SIGHUP)
    server.wait_log("Hang up: Master", 60)
    assert dropped(server) == {
        "/hang": "not tried: a signal waits",
        "/plain": "not tried: a signal waits",
    }
    wait_until(lambda: server.log.count("Booting worker") == 4, 20, "the reload")
    server.wait_serving("/plain")


def test_a_prefix_of_the_host_is_part_of_each_path(servers: Servers) -> None:
    """Else all pages would be warmed with addresses that nobody uses."""
    environ = {"SCRIPT_NAME": "/shop", "PAGES": "plain,a b", "MISBEHAVE_IN": ""}
    options = QUICK | {"cow-warmup-skip": "/shop/a%20b"}
    server = servers.on("sync", options, app="misbehaving", environ=environ)
    server.wait_serving("/shop/plain")
    assert asked(server, "master") == ["/plain", "/plain"]
    assert server.get("/shop/plain")[1].startswith(b"/shop ")


def test_mounted_applications_are_warmed_each_below_its_own_mount(
    servers: Servers,
) -> None:
    ini = {**MOUNTED, **QUICK, "single-interpreter": "true"}
    environ = {"PAGES": "plain"}
    server = servers.uwsgi(ini, app=None, environ=environ).wait_serving("/b/plain")
    assert asked(server, "master") == ["/plain"] * 2
    assert "cow: warmup=auto: no routes are known of " in server.log


@pytest.mark.parametrize("where", ["trial", "master"])
def test_an_application_with_an_interpreter_of_its_own_is_tried_there(
    servers: Servers, tmp_path: Path, where: str
) -> None:
    """Python's own fork would clear the interpreter in its child: that hangs on 3.10 to
    3.12, and aborts on 3.13. Where pages misbehave in the master alone, none is left
    out that can be."""
    kept = tmp_path / "warm"
    kept.write_bytes(compose("", (), [Served("/b/number/7", "", 9)]))
    bad = {f"/b{path}": why for path, why in DROPPED.items() if path != "/memory"}
    bad["/b/hang"] = "no answer within 0.5 s"
    if where == "master":
        bad = {f"/b/{name}": ".*" for name in ("raise", "end", "leap", "fails")}
    pages = ",".join(each[3:] for each in ("/b/plain", *bad, "/b/last"))
    environ = {"PAGES": pages, "MISBEHAVE_IN": where}
    environ |= {"LEFT_FILE": str(tmp_path / "left")}
    ini = {**MOUNTED, **QUICK, "cow-warmup-file": str(kept), "cow-warmup-repeat": "1"}
    server = servers.uwsgi({**ini, "processes": "2"}, app=None, environ=environ)
    server.wait_serving("/b/last", workers=2)
    assert "is running in multiple interpreter mode" in server.log
    reasons = dropped(server)
    assert set(reasons) == set(bad)
    for path, reason in bad.items():
        assert re.match(reason, reasons[path]), path
    fine = ["/plain", *(each[2:] for each in bad if where == "master"), "/last"]
    assert sorted(asked(server, "master")) == sorted(fine)
    assert " findings=0 " in server.wait_log("cow: preload ")
    assert "cow: warmup file pages=1 warmed=1 dropped=0 left-out=0 " in server.log
    (start,) = warmings.read(open_board(server.pid))
    assert start.pages == (("route", 2), ("file", 1))
    assert server.get("/b/last")[0] == 200
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
