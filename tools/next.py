"""The suite on the next Pythons: Debian unstable in a directory, entered by chroot.

    next.py [PYTHON ...] [-- PYTEST-ARGUMENT ...]   3.14, 3.15 and pypy3 unless named
    next.py --run PYTHON COMMAND ...                a program of that environment

Takes a checkout, root and debootstrap; says plainly what is missing. Makes build/next/:
the system debian.sid/ (COW_NEXT_ROOT names another), a virtual environment for each
interpreter (also 3.14-dbg and 3.15-dbg, which no test needs) and pytest's reports. What
is there is used again; to renew it, delete it.

The checkout is at its own path inside too. Every mount is made in a mount namespace
that ends with the command: none is ever left behind, and deleting the system deletes
nothing else. Other tools import `system()` and `inside()`.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree
from contextlib import contextmanager
from pathlib import Path

from envs import BUILD, PARALLEL, ROOT, fail, say, stamp

HOME = BUILD / "next"
SUITE = "sid"
TESTED = ("3.14", "3.15", "pypy3")
EXECUTABLES = {
    "3.14": "python3.14",
    "3.15": "python3.15",
    "pypy3": "pypy3",
    "3.14-dbg": "python3.14-dbg",
    "3.15-dbg": "python3.15-dbg",
}
PACKAGES = [
    *(f"python3.14{part}" for part in ("", "-dev", "-venv", "-dbg")),
    *(f"python3.15{part}" for part in ("", "-dev", "-venv", "-dbg")),
    *(f"pypy3{part}" for part in ("", "-dev", "-venv")),
    *(f"libpython3.{minor}-testsuite" for minor in (14, 15)),
    *("gcc", "libc6-dev", "libcrypt-dev", "libpcre2-dev"),
    *("make", "mount", "procps"),
]
# As this machine reaches the package index, read-only. Absent ones are left out.
CONFIGURATION = (
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/pip.conf",
    os.path.expanduser("~/.config/pip"),
    os.environ.get("PIP_FIND_LINKS", ""),
)
# Of this machine's own interpreters, or places that are not inside.
UNSET = ("PATH", "PYTHONPATH", "PYTHONHOME", "PYENV_VERSION", "TMPDIR", "VIRTUAL_ENV")
# The root becomes a mount of its own first: `unshare --mount`, which tests use inside,
# can only make a mount point private.
ENTER = """
set -e
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
while [ "$1" != -- ]; do
    if [ -d "$2" ]; then mkdir -p "$root$2"; else touch "$root$2"; fi
    mount --bind -o "$1" "$2" "$root$2"
    shift 2
done
shift
exec chroot "$root" env --chdir="$@"
"""


def require():
    """End with what to install, if something is missing."""
    missing = [
        f"{package} ({command})"
        for command, package in (
            ("debootstrap", "debootstrap"),
            ("unshare", "util-linux"),
            ("mount", "mount"),
        )
        if not shutil.which(command)
    ]
    if missing:
        names = " ".join(each.split()[0] for each in missing)
        fail(f"missing: {', '.join(missing)}: apt-get install {names}")
    if os.geteuid():
        fail("chroot and mounts need root: sudo make test-next")


def root():
    """The directory of the system, whether it is there or not.

    Its name has a dot: setuptools, looking for packages, follows every link below a
    directory that could be one, and /proc is full of them.
    """
    return Path(os.environ.get("COW_NEXT_ROOT") or HOME / f"debian.{SUITE}").resolve()


def command_inside(command, cwd=ROOT, mounts=None):
    """The command of this machine that runs `command` inside, in a namespace."""
    if mounts is None:
        mounts = [("ro", path) for path in CONFIGURATION if os.path.exists(path)]
        mounts.append(("rw", str(ROOT)))
    flat = [part for mount in mounts for part in mount]
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"]
    return [*enter, str(root()), *flat, "--", str(cwd), *map(str, command)]


def environ_inside(**variables):
    environ = {key: value for key, value in os.environ.items() if key not in UNSET}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    ours = {"PATH": path, "LC_ALL": "C.UTF-8", "COW_WERROR": "1"}
    return {**environ, **ours, **variables}


def inside(command, cwd=ROOT, **variables):
    """Run `command` inside the system, the checkout at its own path; its exit code.

    The system must be there: call `system()` once before.
    """
    environ = environ_inside(**variables)
    return subprocess.call(command_inside(command, cwd), env=environ)


@contextmanager
def lock(what):
    """One process at a time sets up the system, or this checkout's environments."""
    HOME.mkdir(parents=True, exist_ok=True)
    what.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{what}.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def bootstrap(directory):
    """Debian's smallest system; what an interrupted run left is made anew."""
    if (directory / "usr/bin/apt-get").exists() and not (
        directory / "debootstrap"
    ).exists():
        return
    if directory.exists():
        if any(str(directory) in line for line in open("/proc/self/mountinfo")):
            fail(f"{directory}: has mounts; umount them")
        say(f"deleting the unfinished {directory}")
        shutil.rmtree(directory)
    say(f"setting up Debian {SUITE} in {directory} (minutes; about 2 GB)")
    # debootstrap mounts /proc in there itself: in a namespace, that goes with it.
    enter = ["unshare", "--mount", "--propagation", "private", "debootstrap"]
    log = HOME / "debootstrap.log"
    with log.open("w") as out:
        code = subprocess.call(
            [*enter, "--variant=minbase", SUITE, str(directory)],
            env=environ_inside(),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    if code:
        fail(f"debootstrap failed: {log}")


def install(directory):
    """Those of PACKAGES that are not there: checkouts may share a system and differ."""
    mark = directory / "cowpreload.packages"
    there = mark.read_text().split() if mark.exists() else []
    missing = [name for name in PACKAGES if name not in there]
    if not missing:
        return
    say(f"installing {' '.join(missing)}")
    # Not the certificates: ca-certificates writes there when it is installed.
    mounts = [("ro", "/etc/resolv.conf")] if os.path.exists("/etc/resolv.conf") else []

    def apt(*arguments):
        command = command_inside(["apt-get", "--quiet", *arguments], "/", mounts)
        environ = environ_inside(DEBIAN_FRONTEND="noninteractive")
        with (HOME / "apt.log").open("a") as log:
            return subprocess.call(
                command, env=environ, stdout=log, stderr=subprocess.STDOUT
            )

    if apt("update"):
        # As with a mirror that lags: its signature has run out.
        say("apt-get update failed: using the lists that are there")
    options = ("--yes", "--no-install-recommends")
    if apt("install", *options, *missing):
        fail(
            f"apt-get failed: {HOME / 'apt.log'}; if the archive has moved on, "
            f"delete {directory} and run this again"
        )
    mark.write_text(" ".join(there + missing))


def system():
    """The directory of the system, set up if need be; ends with what is missing."""
    require()
    directory = root()
    with lock(directory):
        bootstrap(directory)
        install(directory)
    return directory


def environment(name):
    """The virtual environment of an interpreter, with the package and its tests."""
    home = HOME / f"venv-{name}"
    mark = home / "cowpreload.stamp"
    wanted = f"{root()} {stamp(name)}"
    with lock(HOME / "venv"):
        if mark.exists() and mark.read_text() == wanted:
            return home / "bin"
        say(f"setting up {home.relative_to(ROOT)}")
        pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet"]
        pip += ["--prefer-binary"]
        # PyPy has its own cffi, and no other can be installed there.
        tools = ["setuptools>=77"] + ["cffi>=2"] * (name != "pypy3")
        for command in (
            [EXECUTABLES[name], "-m", "venv", "--clear", home],
            [*pip, "--upgrade", "pip", *tools],
            [*pip, "--no-build-isolation", "--editable", f"{ROOT}[test]"],
        ):
            if inside(command):
                fail(f"{name}: no virtual environment; see above")
        mark.write_text(wanted)
    return home / "bin"


def counts(report):
    """What a report of pytest's says, as one text."""
    try:
        (suite,) = xml.etree.ElementTree.parse(report).getroot()
    except (OSError, ValueError, xml.etree.ElementTree.ParseError):
        return "no report"
    names = ("tests", "failures", "errors", "skipped")
    tests, failures, errors, skipped = (int(suite.get(name, 0)) for name in names)
    bad = failures + errors
    return f"{tests - bad - skipped} passed, {bad} failed, {skipped} skipped"


def test(names, arguments):
    """The suite on each interpreter; a line for each, then the worst code."""
    system()
    lines, codes = [], []
    for name in names:
        bin_ = environment(name)
        report = HOME / f"report-{name}.xml"
        report.unlink() if report.exists() else None
        say(f"testing on {name}")
        start = time.monotonic()
        command = [bin_ / "python", "-m", "pytest", *PARALLEL, f"--junitxml={report}"]
        codes.append(inside([*command, *arguments]))
        seconds = time.monotonic() - start
        verdict = "failed" if codes[-1] else "passed"
        lines.append(f"{name} {verdict}: {counts(report)}, {seconds:.0f} s")
    for line in lines:
        say(line)
    return max(codes)


def run(name, command):
    """A program of the environment, by its name in bin/, or any of the system."""
    system()
    bin_ = environment(name)
    path = f"{bin_}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    return inside(command, PATH=path)


def main(arguments):
    names, rest = arguments, []
    if arguments[:1] == ["--run"]:
        names, rest = arguments[1:2], arguments[2:]
        if not rest:
            fail("usage: next.py --run PYTHON COMMAND ...")
    elif "--" in arguments:
        at = arguments.index("--")
        names, rest = arguments[:at], arguments[at + 1 :]
    for name in names:
        if name not in EXECUTABLES:
            fail(f"{name}: no interpreter here; one of {' '.join(EXECUTABLES)}")
    if arguments[:1] == ["--run"]:
        return run(names[0], rest)
    return test(names or TESTED, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
