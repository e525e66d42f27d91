"""Without readable memory figures: said once, and the server serves on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAMS, QUICK, Servers
from harness.processes import script
from harness.server import Server, free_port


def can_unshare() -> bool:
    """Whether this user may have a mount namespace of its own."""
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/proc"]
    try:
        return subprocess.run(probe, capture_output=True).returncode == 0
    except OSError:
        return False


needs_unshare = pytest.mark.skipif(
    not can_unshare(), reason="needs root, or user namespaces, for a mount of its own"
)

# What is done to /proc inside the namespace before the server starts.
MOUNTS = {
    "no-proc": "mount -t tmpfs none /proc",
    "hidepid": "mount -t proc -o hidepid=2 proc /proc",
    "no-rollup": "true",
}


@needs_unshare
@pytest.mark.parametrize("mount", ["no-proc", "hidepid"])
@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_a_server_without_proc_serves_on_without_limits(
    servers: Servers, host: str, mount: str, tmp_path: Path
) -> None:
    port = free_port()
    flags = {**QUICK, "cow-max-growth": "30M", "cow-budget": "40M"}
    if host == "sync":
        command = [sys.executable, "-m", "gunicorn", "-b", f"127.0.0.1:{port}"]
        command += ["-k", "cow", "app"]
        command += [
            part for key, value in flags.items() for part in (f"--{key}", value)
        ]
    else:
        command = [script("uwsgi"), "--http-socket", f"127.0.0.1:{port}", "--master"]
        command += ["--die-on-term", "--plugins-dir", str(servers.plugins())]
        command += ["--plugin", "cow", "--module", "app"]
        command += [
            part for key, value in flags.items() for part in (f"--{key}", value)
        ]
    shell = f'{MOUNTS[mount]} && exec "$@"'
    server = Server(
        ["unshare", "--mount", "sh", "-c", shell, "sh", *command],
        port,
        PROGRAMS,
        tmp_path / "server.log",
        {"HOME": str(tmp_path)},
    )
    servers.running.append(server)
    server.wait_serving()
    assert server.get("/grow?mb=60")[0] == 200
    if mount == "no-proc":
        assert server.log.count("memory unreadable") == 1
        assert server.log.count("budget: the master cannot be read (") == 1
        assert "serving on without limits" in server.log
        for _ in range(20):
            assert server.get("/")[0] == 200
        assert " recycled " not in server.log
    else:
        # One's own figures are always there: limits act as ever.
        server.wait_log(" recycled ")
        assert "unreadable" not in server.log


@needs_unshare
def test_smaps_is_read_where_there_is_no_rollup(tmp_path: Path) -> None:
    """A copy of /proc/self without smaps_rollup, as on old kernels."""
    program = (
        "import os, sys; sys.path.insert(0, os.environ['ROOT']);"
        "from cowpreload import _core; smaps = open('/proc/self/smaps').read();"
        "import subprocess as s;"
        "s.run(['mount', '-t', 'tmpfs', 'none', '/proc'], check=True);"
        "os.makedirs('/proc/self'); open('/proc/self/smaps', 'w').write(smaps);"
        "r = _core.take_reading(); print(r.private > 1 << 20, r.rss > r.private)"
    )
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "ROOT": str(PROGRAMS.parent.parent)},
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


@pytest.mark.parametrize("host", ["sync", "uwsgi"])
def test_without_a_memfd_limits_act_and_it_is_said_with_the_reason(
    servers: Servers, host: str, tmp_path: Path
) -> None:
    """An old kernel, or a filter of system calls: uWSGI did not start."""
    shim = tmp_path / "shim.c"
    shim.write_text(
        "#include <errno.h>\n"
        "int memfd_create(const char *name, unsigned flags)\n"
        "{ (void)name; (void)flags; errno = ENOSYS; return -1; }\n"
    )
    library = tmp_path / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, shim], check=True)
    options = {**QUICK, "cow-max-growth": "30M"}
    environ = {"LD_PRELOAD": str(library)}
    server = servers.on(host, options, workers=1, environ=environ).wait_serving()
    said = "cow: no memfd (Function not implemented): limits act"
    assert server.log.count(said) == 1
    worker = server.workers()[0]
    assert server.get("/grow?mb=60")[0] == 200
    server.wait_log(f"pid={worker} recycled")
    server.wait_serving()
