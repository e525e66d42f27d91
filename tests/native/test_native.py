"""The native core under the sanitizers, without Python in the way."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cowpreload.native.build import SOURCES

HERE = Path(__file__).parent
NATIVE = HERE.parent.parent / "cowpreload" / "native"
SANITIZERS = ("address,undefined", "thread")


def compiler() -> str:
    return shutil.which("cc") or "gcc"


def supports(sanitizer: str, directory: Path) -> bool:
    """Whether this compiler has the sanitizer's runtime."""
    source = directory / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    command = [compiler(), f"-fsanitize={sanitizer}", str(source), "-o"]
    done = subprocess.run([*command, str(directory / "empty")], capture_output=True)
    return done.returncode == 0


@pytest.mark.parametrize("name", ["test_core", "test_still"])
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_the_core_is_clean_under_the_sanitizers(
    tmp_path: Path, sanitizer: str, name: str
) -> None:
    """Threads, tickets of many processes, texts cut at every byte; still copies."""
    if not supports(sanitizer, tmp_path):
        pytest.skip(f"{compiler()} has no -fsanitize={sanitizer}: install libgcc's")
    program = tmp_path / name
    command = [compiler(), "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += [f"-fsanitize={sanitizer}", "-fno-omit-frame-pointer", f"-I{NATIVE}"]
    command += [str(NATIVE / source) for source in SOURCES]
    subprocess.run(
        [*command, str(HERE / f"{name}.c"), "-o", str(program), "-pthread"],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("done\n")
    assert "Sanitizer" not in done.stderr
