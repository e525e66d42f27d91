"""What the start-up file (cowpreload.pth) adds to every start of the interpreter.

Throw-away environments differ by that one file, copied from the one that runs this:
none, one with the line `import sys` (what any .pth costs), ours, and ours with
COWPRELOAD_STARTUP=0. `python -c pass` is started in each, in turn and in changing
order; figures are of the differences within a round to the one without: wall time from
the spawn to the end, and the processor time of the child, both in ms. Other work of
the machine only ever adds: `added_ms_undisturbed` is the difference of the tenth
percentiles. `line_ms` is the file's line alone, run in this process over and over, and
`asked_us` what each first import of a module pays afterwards, in microseconds.
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
from pathlib import Path

from measure import common
from measure.common import Figures, spread

FILE = "cowpreload.pth"
Cost = tuple[float, float]


def _environment(directory: Path, content: str | None) -> str:
    """Make a venv; the path of its interpreter."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True
    )
    if content is not None:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        target = directory / "lib" / version / "site-packages" / FILE
        target.write_text(content)
    return str(directory / "bin" / "python")


def _start(python: str, switch: str) -> Cost:
    """One start: wall and processor time, ms."""
    environ = {"PATH": os.defpath, "COWPRELOAD_STARTUP": switch}
    begin = time.perf_counter()
    pid = os.posix_spawn(python, [python, "-c", "pass"], environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{python}: ended with status {status}")
    return wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000


def _line(line: str) -> Figures:
    """Run the line as `site` does, compiled anew each time; then ask its finder."""
    finders = list(sys.meta_path)
    times, asked = [], []
    for _ in range(300):
        begin = time.perf_counter()
        exec(line)
        times.append((time.perf_counter() - begin) * 1000)
        finder = sys.meta_path[0]
        sys.meta_path[:] = finders
        begin = time.perf_counter()
        for _ in range(100):
            finder.find_spec("absent", None, None)
        asked.append((time.perf_counter() - begin) * 1e6 / 100)
    return {"line_ms": spread(times), "asked_us": spread(asked)}


def _tenth(costs: Sequence[Cost]) -> float:
    """The tenth percentile of the wall time, ms."""
    return statistics.quantiles([cost[0] for cost in costs], n=10)[0]


def _measure(pythons: Mapping[str, str], rounds: int) -> Figures:
    ways = {
        "without": (pythons["without"], "1"),
        "with": (pythons["with"], "1"),
        "off": (pythons["with"], "0"),
        "any_line": (pythons["any_line"], "1"),
        "without_again": (pythons["without"], "1"),  # what difference nothing makes
    }
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(rounds + 3):
        names = list(ways)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            cost = _start(*ways[name])
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
    start_file = Path(sysconfig.get_path("purelib"), FILE)
    if not start_file.exists():
        sys.exit(f"{start_file}: not there; install cowpreload into this interpreter")
    with tempfile.TemporaryDirectory(prefix="cow-measure-") as name:
        line = start_file.read_text()
        contents = {"without": None, "any_line": "import sys\n", "with": line}
        pythons = {
            each: _environment(Path(name, each), content)
            for each, content in contents.items()
        }
        common.say(f"startup_cost: {arguments.rounds} rounds")
        figures = _line(line) | _measure(pythons, arguments.rounds)
    common.report("startup_cost", figures)


if __name__ == "__main__":
    main()
