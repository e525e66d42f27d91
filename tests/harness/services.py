"""What applications talk to: a PostgreSQL, a Redis, a web server with TLS.

Each is a context that starts one in a directory of the test's and ends it; MissingError
says which Debian package brings what is not installed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.processes import wait_until
from harness.server import free_port

_NOBODY = 65534


class MissingError(Exception):
    """The machine has no such server."""


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


@contextlib.contextmanager
def _running(
    command: Sequence[str], log: Path, end: signal.Signals = signal.SIGTERM
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.send_signal(end)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL on a socket of its own.

    Attributes:
        binaries: the directory of psql.
        directory: of its socket.
        port: names the socket; no port of the machine's is taken.
    """

    binaries: Path
    directory: Path
    port: int = 5432

    @property
    def url(self) -> str:
        """What libpq connects to."""
        return f"host={self.directory} port={self.port} user=shop dbname=postgres"

    def clients(self, state: str = "%") -> list[str]:
        """The application_name of each connection that it has now, in this state."""
        query = (
            "select coalesce(nullif(application_name, ''), '-') from pg_stat_activity "
            "where backend_type = 'client backend' and pid <> pg_backend_pid() "
            f"and state like '{state}'"
        )
        return _output(str(self.binaries / "psql"), self.url, "-Atc", query).split()


@contextlib.contextmanager
def postgres(home: Path) -> Iterator[Postgres]:
    """One with an empty database; `home` must be short, as it holds the socket."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        raise MissingError("no PostgreSQL: apt-get install postgresql")
    server = Postgres(found[-1].parent, home)
    prefix: list[str] = []
    if os.geteuid() == 0:  # which PostgreSQL refuses
        ids = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        prefix = ["setpriv", *ids]
        shutil.chown(home, _NOBODY, _NOBODY)
    data = str(home / "data")
    make = [*prefix, str(server.binaries / "initdb"), "-D", data]
    make += ["-U", "shop", "-A", "trust", "--no-sync"]
    made = subprocess.run(make, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    command = [*prefix, str(found[-1]), "-D", data, "-h", "", "-F"]
    command += ["-k", str(home), "-p", str(server.port)]
    is_ready = [str(server.binaries / "pg_isready"), "-q", "-h", str(home)]
    # SIGINT: without waiting for clients that a failed test has left.
    with _running(command, home / "log", signal.SIGINT):
        wait_until(lambda: subprocess.run(is_ready).returncode == 0, 60, "PostgreSQL")
        yield server


@dataclass(frozen=True)
class Redis:
    """A Redis on a socket of its own, that keeps nothing."""

    socket: Path

    def clients(self) -> list[str]:
        """The name of each connection that it has now."""
        output = _output("redis-cli", "-s", str(self.socket), "client", "list")
        rows = [line.split() for line in output.splitlines()]
        asked = [row for row in rows if not any("client|list" in each for each in row)]
        names = [each[5:] for row in asked for each in row if each.startswith("name=")]
        return [name or "-" for name in names]


@contextlib.contextmanager
def redis(home: Path) -> Iterator[Redis]:
    binary = shutil.which("redis-server")
    if binary is None:
        raise MissingError("no Redis: apt-get install redis-server")
    server = Redis(home / "redis")
    command = [binary, "--port", "0", "--unixsocket", str(server.socket)]
    command += ["--save", "", "--appendonly", "no", "--dir", str(home)]
    with _running(command, home / "redis.log"):
        wait_until(server.socket.exists, 60, "Redis")
        yield server


@dataclass(frozen=True)
class Tls:
    """A web server that answers with the path; `authority` signed its certificate."""

    url: str
    authority: Path


_TLS = """
import http.server, json, socketserver, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def setup(self):
        self.request.settimeout(60)
        self.request.do_handshake()
        super().setup()
    def do_GET(self):
        body = json.dumps([self.path[1:], self.client_address[1]]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    def handle_error(self, request, client_address):
        print("broken:", sys.exc_info()[1], file=sys.stderr, flush=True)
server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(
    server.socket, server_side=True, do_handshake_on_connect=False
)
server.serve_forever()
"""


@contextlib.contextmanager
def tls(home: Path) -> Iterator[Tls]:
    """One that keeps connections open, and gives tickets for sessions."""
    if shutil.which("openssl") is None:
        raise MissingError("no openssl: apt-get install openssl")
    certificate, key, port = home / "certificate.pem", home / "key.pem", free_port()
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(make, check=True, capture_output=True)
    command = [sys.executable, "-c", _TLS, str(port), str(certificate), str(key)]
    url = f"https://localhost:{port}"
    context = ssl.create_default_context(cafile=str(certificate))

    def answers() -> bool:
        from urllib.request import urlopen

        with contextlib.suppress(OSError):
            return bool(urlopen(f"{url}/ready", context=context, timeout=5).read())
        return False

    with _running(command, home / "tls.log"):
        wait_until(answers, 60, "TLS")
        yield Tls(url, certificate)
