"""Building the uWSGI plugin, and loading it where it does not belong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Servers, needs_uwsgi, run
from harness.processes import script, wait_until
from test_immortality import CAN
from test_lifecycle import me

from cowpreload.errors import PluginBuildError
from cowpreload.plugin_build import PLUGIN_FILE, fingerprint, mark, sources, stale


def build(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run(
        "-m", "cowpreload", "plugin", "build", *arguments, env={**os.environ, **environ}
    )


def test_stdout_is_just_the_ini_lines(plugin_directory: Callable[[], Path]) -> None:
    """Of the command that built the plugin of all tests."""
    made = plugin_directory()
    was = made.with_name(f"{made.name}.making")  # renamed when it was whole
    assert (made / "printed").read_text().splitlines() == [
        f"plugins-dir = {was}",
        "need-plugin = cow",
        "cow-max-private = 200M",
    ]
    assert f"wrote {was / 'cow_plugin.so'}" in (made / "said").read_text()


def test_a_missing_uwsgi_is_named() -> None:
    done = build("--uwsgi", "/nowhere/uwsgi")
    assert done.returncode == 1
    assert "uwsgi=/nowhere/uwsgi: no such binary; pip install" in done.stderr


@needs_uwsgi
def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    done = build("--output", str(tmp_path), CC="no-such-cc", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "CC=no-such-cc: no C compiler; install them, as in apt-get" in done.stderr


@needs_uwsgi
def test_all_that_is_missing_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was one at a time: who had installed the compiler was told of the headers."""
    from cowpreload import plugin_build

    monkeypatch.setenv("CC", "no-such-cc")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(PluginBuildError) as caught:
        plugin_build.build(script("uwsgi"), tmp_path)
    assert str(caught.value) == (
        f"CC=no-such-cc: no C compiler, {tmp_path}/Python.h: no headers of this Python;"
        " install them, as in apt-get install gcc python3-dev"
    )


def test_remove_finds_what_was_built_and_leaves_what_is_anothers(
    tmp_path: Path,
) -> None:
    """`pip uninstall` knows nothing of it."""
    made = tmp_path / "lib" / "cowpreload"
    made.mkdir(parents=True)
    for name in ("cow_plugin.so", "another_plugin.so"):
        (made / name).touch()
    remove = ("-m", "cowpreload", "plugin", "remove", "--output", str(made))
    done = run(*remove)
    assert done.returncode == 0
    assert f"removed {made / 'cow_plugin.so'}; remove these lines" in done.stderr
    assert done.stdout.splitlines() == [f"plugins-dir = {made}", "need-plugin = cow"]
    assert [path.name for path in made.iterdir()] == ["another_plugin.so"]

    again = run(*remove)
    assert again.returncode == 1
    assert f"output={made}: no cow_plugin.so there; give --output" in again.stderr

    (made / "another_plugin.so").rename(made / "cow_plugin.so")
    assert run(*remove).returncode == 0
    assert not made.exists()


def test_what_is_no_uwsgi_is_named(tmp_path: Path) -> None:
    done = build("--uwsgi", shutil.which("false") or "", "--output", str(tmp_path))
    assert done.returncode == 1
    assert "does not answer --version" in done.stderr


def refused(servers: Servers, made: Path, why: str) -> None:
    """The plugin in this directory ends the start, and says how it was built."""
    ini = {"plugins-dir": str(made), "need-plugin": "cow"}
    server = servers.uwsgi(ini, plugin=False)
    assert server.wait_exit() == 1
    command = f"cowpreload plugin build --uwsgi {os.path.realpath(script('uwsgi'))}"
    assert f"cow: this plugin was built {why}; run: {command}\n" in server.log
    assert "Traceback" not in server.log


@needs_uwsgi
@pytest.mark.deep  # it builds the plugin; the one below in a binary without Python
def test_a_plugin_of_another_binary_refuses_with_the_command_that_fixes_it(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not crash: nothing of the binary's structs is touched before."""
    from cowpreload import plugin_build

    other = tmp_path / "other"
    monkeypatch.setattr(plugin_build, "fingerprint", lambda *_: 0x1234)
    plugin_build.build(script("uwsgi"), other)
    refused(servers, other, "for another uwsgi")


@needs_uwsgi
@pytest.mark.deep  # here: tests/unit/test_build.py, and the same check below
def test_an_older_plugin_refuses_with_the_command_that_builds_it_anew(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same version, a commit before: each start ended with a bare traceback of
    what that plugin does not call yet."""
    from cowpreload import plugin_build

    older = tmp_path / "older"
    shutil.copytree(sources(), older)
    for name, now, before in (
        ("plugin.c", "!= COW_REVISION ", "!= COW_REVISION - 1 "),
        (
            "stage.c",
            'cow_call(PLUGIN, "meet", "(N)", functions)',
            "(functions ? Py_None : NULL)",
        ),
    ):
        text = (older / name).read_text()
        assert now in text
        (older / name).write_text(text.replace(now, before))
    monkeypatch.setattr(plugin_build, "sources", lambda: older)
    plugin_build.build(script("uwsgi"), tmp_path / "made")
    refused(servers, tmp_path / "made", "by another cowpreload")


@needs_uwsgi
def test_a_plugin_of_another_commit_is_told_by_its_file(
    plugin_directory: Callable[[], Path], tmp_path: Path
) -> None:
    """`doctor` called it built for this uwsgi; the start refused it."""
    built = (plugin_directory() / PLUGIN_FILE).read_bytes()
    ours = mark().encode()
    assert built.count(ours) == 1
    revision, _, rest = ours.partition(b" sources=")
    for said, other in (
        ("", ours),
        ("was built of other sources", revision + b" sources=" + b"0" * 16 + b";"),
        ("uWSGI will not start with it", b"cow-plugin revision=1 sources=" + rest),
        ("was built by an older cowpreload", b""),
    ):
        plugin = tmp_path / PLUGIN_FILE
        plugin.write_bytes(built.replace(ours, other))
        found = stale(plugin)
        assert (said in found) if said else found == ""
    plugin.unlink()
    assert "cannot be compared (No such file" in stale(plugin)


@needs_uwsgi
def test_without_the_file_the_lines_that_are_printed_end_the_start(
    servers: Servers, tmp_path: Path
) -> None:
    """With `plugin = cow`, uWSGI only warned and served without us."""
    ini = {"plugins-dir": str(tmp_path), "need-plugin": "cow"}
    server = servers.uwsgi(ini, plugin=False)
    assert server.wait_exit() == 1
    assert "cow_plugin.so" in server.log


def test_a_plugin_in_a_binary_without_python_refuses(
    plugin_directory: Callable[[], Path], tmp_path: Path
) -> None:
    """dlopen from a program that is no uwsgi: the checks hold, nothing crashes."""
    program = tmp_path / "host.c"
    program.write_text(
        "#include <dlfcn.h>\n#include <stdarg.h>\n#include <stdio.h>\n"
        "#include <unistd.h>\n"
        "char uwsgi[1 << 20];\n"
        "void uwsgi_log(const char *f, ...) {\n"
        "    va_list a; va_start(a, f); vprintf(f, a); va_end(a); }\n"
        "void uwsgi_exit(int code) { fflush(stdout); _exit(code); }\n"
        "int main(int c, char **v) {\n"
        "    void *h = dlopen(v[1], RTLD_LAZY | RTLD_GLOBAL);\n"
        "    if (!h) { puts(dlerror()); return 9; }\n"
        '    void (*f)(void) = dlsym(h, "cow_identity_check"); f(); return 8; }\n'
    )
    host = tmp_path / "host"
    subprocess.run(
        ["cc", "-rdynamic", "-o", str(host), str(program), "-ldl"], check=True
    )
    plugin = str(plugin_directory() / "cow_plugin.so")
    done = subprocess.run([str(host), plugin], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    assert "was built for another uwsgi; run: cowpreload plugin build" in done.stdout


def test_the_fingerprint_is_fnv1a() -> None:
    assert fingerprint(b"foobar", b"") == fingerprint(b"foo", b"bar")
    assert fingerprint(b"foobar", b"") == 0x85944171F73967E8


def test_every_c_file_is_in_the_build() -> None:
    listed: dict[str, list[str]] = {}
    exec((sources() / "uwsgiplugin.py").read_text(), listed)
    assert {f"{name}.c" for name in listed["GCC_LIST"]} == {
        path.name for path in sources().glob("*.c")
    }


@pytest.mark.parametrize("single", ["true", "false"])
def test_several_applications_are_each_warmed_and_frozen(
    servers: Servers, single: str, tmp_path: Path
) -> None:
    """In sub-interpreters, too: each has its own collector and exit handlers."""
    log = tmp_path / "exit"
    ini = {
        "processes": "1",
        "mount": ["/one=app:application", "/two=forking:application"],
        "manage-script-name": "true",
        "cow-warmup": ["/one/sum?n=3", "/two/comms"],
        "cow-gc": "off",
    }
    if single == "true":
        ini["single-interpreter"] = "true"
    server = servers.uwsgi(ini, app=None, environ={"EXIT_LOG": str(log)})
    server.wait_serving("/one/me")
    assert "warmup-requests=4" in server.log
    wait_until(lambda: b"cow-watch" in server.get("/two/comms")[1], 5, "watching")
    if CAN:  # in every interpreter
        assert b"false" not in server.get("/one/immortal")[1]
        assert server.get("/two/immortal")[1] == b"True"
    assert server.get("/one/gc")[1] == b'{"collections": 0}'
    pid = server.workers()[0]
    server.stop()
    said = [line for line in log.read_text().splitlines() if line.startswith(f"{pid} ")]
    assert said == [f"{pid} second", f"{pid} first"]
    assert "Traceback" not in server.log


def test_a_virtual_environments_python_must_be_uwsgis(
    servers: Servers, tmp_path: Path
) -> None:
    """A mismatch is named, not compiled."""
    fake = tmp_path / "uwsgi"
    fake.write_text("#!/bin/sh\necho 2.7.18\n")
    fake.chmod(0o755)
    done = build("--uwsgi", str(fake), "--output", str(tmp_path))
    assert done.returncode == 1
    ours = "{}.{}".format(*sys.version_info)
    assert f"runs Python 2.7.18, this is {ours}; install cowpreload" in done.stderr


def test_the_worker_of_uwsgi_knows_itself(servers: Servers) -> None:
    server = servers.uwsgi({"processes": "1"}).wait_serving()
    assert me(server)["worker"]["slot"] == 1
