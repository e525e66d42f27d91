"""What cowpreload.pth and the module it runs add to every start of the interpreter.

Throw-away environments differ by these two files, copied from the one that runs this:
none, a .pth with the line `import sys` (what any costs), and ours. `python -c pass` is
started in each, in turn and in changing order; figures are of the differences within a
round to the one without: wall time from the spawn to the end, and the processor time
of the child, both in ms. Other work of the machine only ever adds:
`added_ms_undisturbed` is the difference of the tenth percentiles. `asked_us` is what
each first import of a module pays afterwards, in microseconds.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from measure import common
from measure.common import Figures, spread

FILES = ("cowpreload.pth", "_cowpreload_startup.py")
Cost = tuple[float, float]


def _environment(directory: Path, files: Mapping[str, str]) -> str:
    """Make a venv with these in its site-packages; the path of its interpreter."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True
    )
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for name, content in files.items():
        (directory / "lib" / version / "site-packages" / name).write_text(content)
    return str(directory / "bin" / "python")


def _start(python: str) -> Cost:
    """One start: wall and processor time, ms."""
    environ = {"PATH": os.defpath}
    begin = time.perf_counter()
    pid = os.posix_spawn(python, [python, "-c", "pass"], environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{python}: ended with status {status}")
    return wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000


def _asked() -> Figures:
    """What the finder costs each first import of a module."""
    find_spec = import_module("_cowpreload_startup").CowpreloadFinder.find_spec
    times = []
    for _ in range(300):
        begin = time.perf_counter()
        for _ in range(100):
            find_spec("absent", None, None)
        times.append((time.perf_counter() - begin) * 1e6 / 100)
    return {"asked_us": spread(times)}


def _tenth(costs: Sequence[Cost]) -> float:
    """The tenth percentile of the wall time, ms."""
    return statistics.quantiles([cost[0] for cost in costs], n=10)[0]


def _measure(pythons: Mapping[str, str], rounds: int) -> Figures:
    ways = {
        "without": pythons["without"],
        "with": pythons["with"],
        "any_line": pythons["any_line"],
        "without_again": pythons["without"],  # what difference nothing makes
    }
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(rounds + 3):
        names = list(ways)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            cost = _start(ways[name])
            if number >= 3:  # the first rounds fill caches
                costs[name].append(cost)
    figures: Figures = {"start_ms": spread([cost[0] for cost in costs["without"]])}
    least = {name: _tenth(of) for name, of in costs.items()}
    for name in list(ways)[1:]:
        undisturbed = round(least[name] - least["without"], 3)
        figures[name] = {"added_ms_undisturbed": undisturbed}
        for index, unit in enumerate(("added_ms", "added_cpu_ms")):
            differences = [
                cost[index] - base[index]
                for cost, base in zip(costs[name], costs["without"], strict=True)
            ]
            figures[name][unit] = spread(differences)
    return figures


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    common.end_cleanly()
    folder = Path(sysconfig.get_path("purelib"))
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        sys.exit(f"{folder}: no {missing[0]}; install cowpreload into this interpreter")
    ours = {name: (folder / name).read_text() for name in FILES}
    with tempfile.TemporaryDirectory(prefix="cow-measure-") as name:
        any_line = {"any.pth": "import sys\n"}
        contents = {"without": {}, "any_line": any_line, "with": ours}
        pythons = {
            each: _environment(Path(name, each), content)
            for each, content in contents.items()
        }
        common.say(f"startup_cost: {arguments.rounds} rounds")
        figures = _asked() | _measure(pythons, arguments.rounds)
    common.report("startup_cost", figures)


if __name__ == "__main__":
    main()
