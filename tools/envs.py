"""Virtual environments in build/, and what runs in them: the Makefile's right hand.

    envs.py test [PYTEST-ARGUMENT ...]          the newest interpreter
    envs.py test-others [PYTEST-ARGUMENT ...]   on the others, what differs there
    envs.py test-all [PYTEST-ARGUMENT ...]      every interpreter found from 3.10 on
    envs.py test-faults [PYTEST-ARGUMENT ...]   the newest, the fault tests in full
    envs.py soak [ARGUMENT ...]                 the newest, `make soak`
    envs.py asan | demo | lint | format | docs | docs-site  the newest interpreter

Takes nothing but the checkout; says plainly what is missing on the machine. Runs on
any Python from 3.9 on, with nothing installed.
"""

import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

# A warning ends our own builds, and never a user's: see CONTRIBUTING.md.
os.environ.setdefault("COW_WERROR", "1")

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
OLDEST, NEWEST = 10, 15
# Tests side by side, as far as memory goes: two more than there are cores, as a third
# of their time is waiting (of two cores, three processes left a fifth idle, four leave
# a twentieth). A process that is done takes over from another: the slowest test takes
# as long as a hundred others.
PARALLEL = ("-n", str(min((os.cpu_count() or 1) + 2, 8)), "--dist", "worksteal")
TESTS_FAILED = 1  # pytest's exit code
ASK = (
    "import sys, sysconfig, os, venv, ensurepip;"
    "print(sys.executable);"
    "print(os.path.exists(sysconfig.get_paths()['include'] + '/Python.h'))"
)


def say(text):
    print(f"envs: {text}", file=sys.stderr, flush=True)


def fail(text):
    say(text)
    sys.exit(1)


def pyenv_variables():
    """Make pyenv's shims answer for every version that it holds.

    A shim that runs this file has set PYENV_VERSION to its own; several are somebody's
    choice.
    """
    if not shutil.which("pyenv") or ":" in os.environ.get("PYENV_VERSION", ""):
        return {}
    done = subprocess.run(
        ["pyenv", "versions", "--bare"], stdout=subprocess.PIPE, text=True
    )
    versions = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return {"PYENV_VERSION": ":".join(reversed(versions))} if versions else {}


def interpreters():
    """(minor version, path) of every usable CPython, oldest first."""
    environ = dict(os.environ, **pyenv_variables())
    found = []
    for minor in range(OLDEST, NEWEST + 1):
        name = f"python3.{minor}"
        if not shutil.which(name):
            continue
        done = subprocess.run(
            [name, "-c", ASK],
            env=environ,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it does not start"])[-1]
            say(f"{name} left out: {last}")
            continue
        path, headers = done.stdout.split()
        if headers != "True":
            say(f"{name} left out: no Python.h (apt-get install {name}-dev)")
            continue
        found.append((minor, path))
    return found


@functools.cache
def require():
    """The usable interpreters; ends with what to install if something is missing."""
    found = interpreters()
    minors = [minor for minor, _ in found]
    absent = [minor for minor in range(OLDEST, NEWEST + 1) if minor not in minors]
    names = [" ".join(f"3.{minor}" for minor in each) for each in (minors, absent)]
    say(f"CPython here: {names[0] or 'none'}; not here: {names[1] or 'none'}")
    lacks = []
    if not (shutil.which("cc") or shutil.which("gcc")):
        lacks.append(("a C compiler", "build-essential"))
    if not found:
        what = f"CPython from 3.{OLDEST} on with venv and headers"
        lacks.append((what, "python3 python3-venv python3-dev"))
    if lacks:
        said = ", ".join(lack for lack, _ in lacks)
        fail(f"missing: {said}: apt-get install {' '.join(name for _, name in lacks)}")
    return found


def stamp(path):
    """What the environment depends on, as one text."""
    digest = hashlib.sha256()
    sources = [ROOT / "setup.py", ROOT / "pyproject.toml", Path(__file__)]
    sources += sorted((ROOT / "cowpreload" / "native").glob("*.[ch]"))
    sources += sorted((ROOT / "cowpreload" / "native").glob("*.cdef"))
    sources += [ROOT / "cowpreload" / "native" / "build.py"]
    sources += sorted((ROOT / "cowpreload" / "start-up").glob("*cowpreload*.*"))
    for source in sources:
        digest.update(source.read_bytes())
    return path + " " + digest.hexdigest()


def clean_environ():
    """Ours, without what would give another path, or let a test's hundreds of servers
    compile the same sources each: a fifth of `make test`."""
    without = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    return {key: value for key, value in os.environ.items() if key not in without}


def run(*command):
    """Run a command in the checkout to its end; its exit code."""
    process = subprocess.Popen(list(map(str, command)), cwd=ROOT, env=clean_environ())
    try:
        return process.wait()
    except KeyboardInterrupt:
        # The terminal sent it Ctrl-C too. subprocess.call would kill it after 0.25 s,
        # and leave the servers of a test or of the demo behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.wait()
        raise


def must(*command):
    """Run a command that prepares others; ends if it fails, which it has explained."""
    code = run(*command)
    if code:
        fail(f"{' '.join(map(str, command))}: exit code {code}; see above")


def become(*command):
    """Run a command in the checkout, in place of this process.

    Signals wait until it has come so far as to end what it started.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    os.chdir(ROOT)
    os.execve(str(command[0]), list(map(str, command)), clean_environ())


def environment(minor, path):
    """A virtual environment with the package (editable) and all extras; its bin/.

    Only the newest interpreter's can lint and build the site, and has the libraries of
    the recipes.
    """
    home = BUILD / f"venv-3.{minor}"
    mark = home / "cowpreload.stamp"
    extras = "test,recipes,lint,docs" if minor == require()[-1][0] else "test"
    wanted = f"{stamp(path)} {extras}"
    if not mark.exists() or mark.read_text() != wanted:
        say(f"setting up {home.relative_to(ROOT)}")
        if not (home / "bin" / "pip").exists():
            must(path, "-m", "venv", "--clear", home)
        pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet"]
        pip += ["--disable-pip-version-check"]
        must(*pip, "--upgrade", "pip", "setuptools>=77", "cffi>=2")
        # In this environment's own build directory: interpreters share the checkout.
        must(*pip, "--no-build-isolation", "--editable", f"{ROOT}[{extras}]")
        mark.write_text(wanted)
    return home / "bin"


def newest():
    return environment(*require()[-1])


def test_on(found, arguments):
    """The tests that `arguments` choose, on these interpreters; the worst exit code.

    Two tests with real servers share two cores. Where CI asks, what failed then may
    show that it passes alone; both runs are in the log.
    """
    code = 0
    for minor, path in found:
        bin_ = environment(minor, path)
        say(f"testing on 3.{minor}")
        start = time.monotonic()
        pytest = (
            bin_ / "python",
            "-m",
            "pytest",
            "-o",
            f"cache_dir={bin_.parent}/cache",
        )
        ended = run(*pytest, *PARALLEL, *arguments)
        if ended == TESTS_FAILED and os.environ.get("CI"):
            say(f"3.{minor}: what failed runs again, by itself")
            ended = run(*pytest, *arguments, "--last-failed")
        code = max(code, ended)
        say(f"3.{minor}: {time.monotonic() - start:.0f} s")
    return code


def test(arguments):
    """The whole suite on the newest interpreter."""
    return test_on(require()[-1:], arguments)


def test_all(arguments):
    """The whole suite on each interpreter."""
    return test_on(require(), arguments)


def test_others(arguments):
    """On all but the newest: what their versions can change."""
    if not require()[:-1]:
        say("one interpreter alone: install others, as with pyenv, to test on them")
    return test_on(
        require()[:-1], ["-m", "each_python and not deep and not faults", *arguments]
    )


def test_faults(arguments):
    """Every fault in full, and the table of them, on the newest interpreter."""
    table = BUILD / "faults.json"
    whole = ["-m", "not deep", "--full", "--fault-table", table]
    return test_on(require()[-1:], ["tests/faults", *whole, *arguments])


def soak(arguments):
    """Everything that happens to servers, mixed; the tests' harness starts them."""
    paths = [str(ROOT / name) for name in ("tools", "tests")]
    code = f"import runpy, sys; sys.path[:0] = {paths};"
    code += "runpy.run_module('soak', run_name='__main__', alter_sys=True)"
    become(newest() / "python", "-c", code, *arguments)


def asan(arguments):
    """Build the core again with the sanitizer, elsewhere, and run the native tests."""
    return run(newest() / "python", "-m", "pytest", "tests/native", *arguments)


def demo(arguments):
    become(newest() / "python", "-m", "cowpreload.bench.demo", *arguments)


def c_files():
    return sorted(
        path
        for folder in ("cowpreload/native", "plugin", "tests/native")
        for path in (ROOT / folder).glob("*.[ch]")
        if not path.name.startswith("_")  # what cffi wrote
    )


def lint(arguments):
    bin_ = newest()
    steps = [
        [bin_ / "ruff", "check", "."],
        [bin_ / "ruff", "format", "--check", "."],
        [bin_ / "mypy"],
        [bin_ / "clang-format", "--dry-run", "--Werror", *c_files()],
        [bin_ / "python", "tools/docs.py", "--check"],
    ]
    return max([run(*step) for step in steps])


def format(arguments):
    bin_ = newest()
    run(bin_ / "ruff", "check", "--fix", ".")
    run(bin_ / "ruff", "format", ".")
    return run(bin_ / "clang-format", "-i", *c_files())


def docs(arguments):
    return run(newest() / "python", "tools/docs.py")


def docs_site(arguments):
    """Built by mkdocs; a link that leads nowhere ends it."""
    return run(newest() / "python", "tools/docs_site.py")


COMMANDS = {
    "test": test,
    "test-others": test_others,
    "test-faults": test_faults,
    "test-all": test_all,
    "soak": soak,
    "asan": asan,
    "demo": demo,
    "lint": lint,
    "format": format,
    "docs": docs,
    "docs-site": docs_site,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        fail(f"usage: envs.py {'|'.join(COMMANDS)}")
    try:
        sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(128 + signal.SIGINT)
