"""The command: python -m deep.fuzz [--seconds 60] [--jobs 2] [NAME ...]

Runs libFuzzer over tests/native/fuzz_*.c, with the sanitizers for addresses and
undefined behaviour, each for some time; then the property tests of Python's readers
with many examples. NAME is a fuzzer, e.g. board, or `python`. What is found stays in
build/deep/fuzz, with a log: its input goes into tests/native/found when it is mended.
Exit code 0: nothing was found. Where there is no clang, that is said.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import envs

from deep.plan import DEEP, ROOT

NATIVE = ROOT / "cowpreload" / "native"
TESTS = ROOT / "tests" / "native"
PLACE = DEEP / "fuzz"
PYTHON = "python"
# One that needs longer hangs: these inputs take microseconds.
INPUT_SECONDS = 10
LONGEST = 16384
# Beside what was recorded: this machine's own.
LIVE = ("smaps_rollup", "smaps", "statm", "maps", "cgroup")
MACHINE = ("/proc/vmstat", "/proc/pressure/memory", "/proc/meminfo")
PROPERTIES = (
    "tests/unit/test_hostile.py",
    "tests/unit/test_reading.py",
    "tests/unit/test_served.py",
    "tests/unit/test_settings.py",
    "tests/unit/test_shapes.py",
    "tests/unit/test_units.py",
    "tests/unit/test_warmup_file.py",
)


@dataclass(frozen=True)
class Fuzzed:
    """What became of one fuzzer."""

    name: str
    executions: int
    found: tuple[str, ...]

    @property
    def line(self) -> str:
        what = ", ".join(self.found) or "nothing found"
        return f"{self.name:>10} {self.executions:>12,}  {what}"


def names() -> list[str]:
    """All fuzzers, by their files."""
    found = (path.stem.removeprefix("fuzz_") for path in TESTS.glob("fuzz_*.c"))
    return sorted(name for name in found if name != "main")


def links(name: str) -> list[Path]:
    """The sources of the core that a fuzzer says it is linked with."""
    said = re.search(r"^ \* Links: (.*)$", (TESTS / f"fuzz_{name}.c").read_text(), re.M)
    return [NATIVE / each for each in said[1].split()] if said else []


def command(compiler: str, name: str, *more: str) -> list[str]:
    """What compiles a fuzzer, but for its sanitizers and the program's name."""
    flags = ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}"]
    sources = [TESTS / f"fuzz_{name}.c", *links(name)]
    return [compiler, *flags, *more, *map(str, sources)]


def seed(corpus: Path) -> None:
    """Texts as kernels write them, and what was found before."""
    corpus.mkdir(parents=True, exist_ok=True)
    paths = [*(ROOT / "tests/unit/recorded").glob("*.smaps*"), *TESTS.glob("found/*")]
    paths += [Path("/proc/self", each) for each in LIVE] + [Path(p) for p in MACHINE]
    for path in paths:
        try:
            text = path.read_bytes()[: LONGEST - 1]
        except OSError:
            continue
        first = b"" if path.parent.name == "found" else b"\xff"
        (corpus / f"seed-{path.name}").write_bytes(first + text)


def fuzz(name: str, seconds: int) -> Fuzzed:
    """Compile a fuzzer and run it; what it does not survive is found."""
    place = PLACE / name
    corpus, log = place / "corpus", place / "log"
    seed(corpus)
    sanitize = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    program = str(place / "program")
    subprocess.run([*command("clang", name, *sanitize), "-o", program], check=True)
    for old in place.glob("found-*"):
        old.unlink()
    run = [program, f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}"]
    run += ["-print_final_stats=1", f"-max_len={LONGEST}", "-rss_limit_mb=2048"]
    run += [f"-artifact_prefix={place}/found-", str(corpus)]
    with log.open("wb") as out:
        code = subprocess.run(run, stdout=out, stderr=subprocess.STDOUT).returncode
    text = log.read_text(errors="replace")
    done = re.search(r"number_of_executed_units: (\d+)", text)
    found = sorted(each.name for each in place.glob("found-*"))
    if code and not found:
        found = [f"exit code {code}"]
    return Fuzzed(name, int(done[1]) if done else 0, tuple(found))


def native(wanted: Sequence[str], seconds: int, jobs: int) -> bool:
    """All of them; whether nothing was found."""
    if not shutil.which("clang"):
        envs.say(
            "no clang: the fuzzers of the core are left out; apt-get install clang"
        )
        return True
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda name: fuzz(name, seconds), wanted))
    print(f"{'fuzzer':>10} {'executions':>12}", flush=True)
    print("\n".join(each.line for each in results), flush=True)
    for each in results:
        if each.found:
            envs.say(f"{each.name}: see {PLACE.relative_to(ROOT) / each.name}/log")
    return not any(each.found for each in results)


def properties() -> bool:
    """Python's readers, with many examples."""
    run = [str(envs.newest() / "python"), "-m", "pytest", "-q", *PROPERTIES]
    run += ["--hypothesis-profile=deep", "-p", "no:cacheprovider"]
    return subprocess.run(run, cwd=ROOT, env=envs.clean_environ()).returncode == 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="deep.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each fuzzer")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("name", nargs="*", help="default: all")
    options = parser.parse_args(arguments)
    wanted = options.name or [*names(), PYTHON]
    good = native([n for n in wanted if n != PYTHON], options.seconds, options.jobs)
    if PYTHON in wanted:
        good &= properties()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
