"""Build the native core, the start-up files; put plugin/ and examples/ into the wheel.

Metadata is in pyproject.toml. What is here is what setuptools has no words for.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).parent
BESIDE = ROOT / "cowpreload" / "start-up"
# The first that ignores the import line of a .pth; see cowpreload/startup.py.
NEEDS_START = sys.version_info >= (3, 18)
RELATIVE = re.compile(r"!?\[([^\]]*)\]\((?!https?:)([^)]*)\)")


def readme() -> str:
    """README.md for the page of an index, where no file of this tree can be reached.

    A relative link would lead nowhere and the picture would be a broken one: each
    becomes its text and the file's name.
    """

    def plain(found: re.Match[str]) -> str:
        text, file = found[1], found[2].partition("#")[0]
        if not file:  # a heading of the README itself
            return text
        return f"`{file}`" if text == file else f"{text} (`{file}`)"

    text = RELATIVE.sub(plain, (ROOT / "README.md").read_text(encoding="utf-8"))
    title, rest = text.split("\n", 1)
    note = "The files named in parentheses are in the source distribution.\n"
    return f"{title}\n{rest.rstrip()}\n\n{note}"


def urls() -> dict[str, str]:
    """Where the project can be found: whoever publishes it says so at the build.

    A checkout does not know its public address, and a wrong one would stay for ever.
    """
    home = os.environ.get("COWPRELOAD_HOMEPAGE", "").rstrip("/")
    if home and not home.startswith("https://"):
        raise SystemExit(f"COWPRELOAD_HOMEPAGE={home}: must begin with https://")
    return {"Homepage": home, "Source": home} if home else {}


def missing() -> str:
    """What compiling needs and this machine lacks, in one line; "" if nothing."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    lacks = []
    if not shutil.which(compiler[0]):
        lacks.append((f"CC={compiler[0]}: no C compiler", "gcc"))
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists() and sys.implementation.name == "cpython":
        lacks.append((f"{header}: no headers of this Python", "python3-dev"))
    if not lacks:
        return ""
    said = ", ".join(lack for lack, _ in lacks)
    packages = " ".join(package for _, package in lacks)
    return f"cowpreload: {said}; install them, as in apt-get install {packages}"


def copy_startup_files(directory: Path) -> None:
    """What is installed beside the package, for this Python, which its wheel is for."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in BESIDE.glob("*cowpreload*.*"):
        if path.suffix != ".start" or NEEDS_START:
            shutil.copy(path, directory)


class BuildPy(build_py):
    """Add the start-up files, the sources of the uWSGI plugin, the example site."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # BuildEditable puts them beside its own .pth
        library = Path(self.build_lib)
        copy_startup_files(library)
        for folder in ("plugin", "examples"):
            shutil.copytree(
                ROOT / folder,
                library / "cowpreload" / folder,
                ignore=shutil.ignore_patterns(
                    "*.so", "*.sqlite3*", "__pycache__", "README.md", ".gitignore"
                ),
                dirs_exist_ok=True,
            )


class BuildExt(build_ext):
    """Say what is missing before the compiler fails over a page."""

    def run(self) -> None:
        if lacks := missing():
            raise SystemExit(lacks)
        super().run()


class BuildEditable(editable_wheel):
    """The same start-up files for `pip install --editable`."""

    def _run_build_commands(self, dist_name, unpacked_wheel, build_lib, tmp_dir):  # type: ignore[no-untyped-def]
        copy_startup_files(Path(unpacked_wheel))
        return super()._run_build_commands(
            dist_name, unpacked_wheel, build_lib, tmp_dir
        )


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    project_urls=urls(),
    cffi_modules=[
        "cowpreload/native/build.py:core",
        "cowpreload/native/build.py:offsets",
    ],
    cmdclass={
        "build_ext": BuildExt,
        "build_py": BuildPy,
        "editable_wheel": BuildEditable,
    },
)
