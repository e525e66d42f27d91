"""Serve from an installed wheel as its README says, then uninstall it.

Takes bin/ of an environment that holds the wheel and both servers. Gives the first
thing that went wrong, or "". Runs on any Python from 3.9 on, with nothing installed;
must leave no process and no file behind.
"""

import contextlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

SECONDS = 60  # for a server to answer, on a loaded machine
APPLICATION = """\
WORDS = [f"a word {number}" for number in range(200_000)]


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(len(WORDS)).encode()]
"""
GUNICORN = ("--worker-class", "cow", "--workers", "2", "--cow-warmup", "/")
INI = """\
[uwsgi]
master = true
processes = 2
http-socket = {address}
wsgi-file = shop.py
callable = application
die-on-term = true
{lines}
cow-warmup = /
"""


class WheelError(Exception):
    """Said in one line, with the server's log below."""


def try_in(bin_):
    """What went wrong with this environment, or ""."""
    with tempfile.TemporaryDirectory(prefix="cowpreload-wheel-") as name:
        work = Path(name)
        (work / "shop.py").write_text(APPLICATION)
        try:
            serve(
                work,
                lambda address: [
                    bin_ / "gunicorn",
                    *GUNICORN,
                    "--bind",
                    address,
                    "shop:application",
                ],
            )
            lines = call(work, bin_ / "cowpreload", "plugin", "build")
            serve(work, lambda address: [bin_ / "uwsgi", ini(work, address, lines)])
            uninstall(work, bin_)
        except WheelError as error:
            return str(error)
    return ""


def ini(work, address, lines):
    path = work / "uwsgi.ini"
    path.write_text(INI.format(address=address, lines=lines))
    return path


def call(work, *command):
    """What a command printed on stdout."""
    done = subprocess.run(list(map(str, command)), cwd=work, capture_output=True)
    if done.returncode:
        raise WheelError(f"{command}: {done.stderr.decode()}")
    return done.stdout.decode()


def serve(work, command):
    """One server: it must answer, and say what it preloaded; then it is ended."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*probe.getsockname())
    words = list(map(str, command(address)))
    log = work / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(words, cwd=work, stdout=out, stderr=out)
    try:
        wait_for(lambda: answer(address) == b"200000", process, log)
        wait_for(lambda: b"cow: preload" in log.read_bytes(), process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answer(address):
    with contextlib.suppress(OSError):
        return urllib.request.urlopen(f"http://{address}/", timeout=5).read()
    return b""


def wait_for(condition, process, log):
    """Look again until it holds; a server that ended will never answer."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise WheelError(f"{process.args[0]}: {log.read_text(errors='replace')}")
        time.sleep(0.1)


def uninstall(work, bin_):
    """Nothing of ours may be left in the environment."""
    call(work, bin_ / "cowpreload", "plugin", "remove")
    call(work, bin_ / "python", "-m", "pip", "uninstall", "--yes", "cowpreload")
    left = [str(path) for path in bin_.parent.rglob("*cow*")]
    if left:
        raise WheelError(f"uninstalling leaves {', '.join(sorted(left))}")
