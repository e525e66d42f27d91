"""Build the native core, the start-up files; put plugin/ and examples/ into the wheel.

Metadata is in pyproject.toml. What is here is what setuptools has no words for.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).parent
BESIDE = ROOT / "cowpreload" / "start-up"
# The first that ignores the import line of a .pth; see cowpreload/startup.py.
NEEDS_START = sys.version_info >= (3, 18)


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


class BuildEditable(editable_wheel):
    """The same start-up files for `pip install --editable`."""

    def _run_build_commands(self, dist_name, unpacked_wheel, build_lib, tmp_dir):  # type: ignore[no-untyped-def]
        copy_startup_files(Path(unpacked_wheel))
        return super()._run_build_commands(
            dist_name, unpacked_wheel, build_lib, tmp_dir
        )


setup(
    cffi_modules=[
        "cowpreload/native/build.py:core",
        "cowpreload/native/build.py:offsets",
    ],
    cmdclass={"build_py": BuildPy, "editable_wheel": BuildEditable},
)
