"""What the measuring programs share: arguments, medians, the site, the result.

Takes plain numbers; gives them as a median with its spread, because a machine that
does other work disturbs times (memory much less). Times are named by their unit;
memory is in bytes until `mb`, which is 10**6 bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import cowpreload
from cowpreload.bench import server
from cowpreload.bench.server import Server

# What the example's own configuration warms: one path for each kind of page.
WARMUP = ("/", "/product/1/", "/search/?q=lamp", "/browse/1/")
_WORDS = ("lamp", "chair", "wooden", "red", "steel lamp")

Figures = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """The example site with a database of its own, and room for logs."""

    path: Path
    directory: Path
    environ: Mapping[str, str]


def mix(count: int) -> list[str]:
    """The paths of `count` requests: list, product, search and few parts in turn."""
    paths = []
    for i in range(count):
        turn = i // 4
        paths.append(
            (
                f"/?page={turn % 5 + 1}",
                f"/product/{turn % 20 + 1}/",
                f"/search/?q={_WORDS[turn % len(_WORDS)].replace(' ', '+')}",
                f"/browse/{turn % 4 + 1}/",
            )[i % 4]
        )
    return paths


def whole_mix(count: int, parts: int) -> list[str]:
    """The paths of `count` requests that read the whole catalogue, and others."""
    paths = []
    for i in range(count):
        kind = i % 5
        if kind == 0:
            paths.append(f"/?page={i % 40 + 1}")
        elif kind == 1:
            paths.append(f"/product/{i * 7 % 2000 + 1}/")
        elif kind == 2:
            paths.append("/search/?q=lamp")
        else:
            paths.append(f"/browse/{i * 31 % parts + 1}/")
    return paths


def spread(values: Sequence[float], digits: int = 3) -> Figures:
    """Median, quartiles and extremes of `values`."""
    low, middle, high = (
        statistics.quantiles(values, n=4, method="inclusive")
        if len(values) > 1
        else [values[0]] * 3
    )
    named = {
        "median": middle,
        "quartiles": [low, high],
        "range": [min(values), max(values)],
    }
    return {"n": len(values), **_rounded(named, digits)}


def _rounded(named: Figures, digits: int) -> Figures:
    return {
        name: [round(each, digits) for each in value]
        if isinstance(value, list)
        else round(value, digits)
        for name, value in named.items()
    }


def mb(size: float) -> float:
    """Bytes as 10**6 bytes."""
    return round(size / 1e6, 2)


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that every program takes."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--site", type=Path, help="the example site's folder")
    return made


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def end_cleanly() -> None:
    """Let SIGTERM unwind the stack, so that everything started is ended."""
    signal.signal(signal.SIGTERM, _end)


def report(name: str, figures: Figures) -> None:
    """Print the result."""
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}"
    result = {
        "measurement": name,
        "python": platform.python_version(),
        "machine": machine,
        **figures,
    }
    print(json.dumps(result, indent=2))


def _site_path(given: Path | None) -> Path:
    path = given or Path(cowpreload.__file__).parent.parent / "examples" / "django_app"
    if not (path / "manage.py").exists():
        sys.exit(f"{path}: no manage.py here; give the example site by --site PATH")
    return path.resolve()


@contextlib.contextmanager
def example_site(given: Path | None, **variables: str) -> Iterator[Site]:
    """The example site with a fresh, seeded database and these SHOP_ variables."""
    end_cleanly()
    path = _site_path(given)
    with tempfile.TemporaryDirectory(prefix="cow-measure-") as name:
        environ = {"SHOP_DB": str(Path(name) / "shop.sqlite3"), **variables}
        subprocess.run(
            [sys.executable, "manage.py", "seed"],
            cwd=path,
            env={**os.environ, **environ},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield Site(path, Path(name), environ)


def gunicorn(site: Site, workers: int, **options: str) -> Server:
    """The site on gunicorn with cow workers, warm; `cow_max_private` and the like."""
    empty = site.directory / "no_gunicorn.conf.py"
    empty.touch()  # else the site's own would be read, by its name
    arguments = ["--config", str(empty), "--worker-class", "cow"]
    arguments += ["--workers", str(workers)]
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", value]
    for path in WARMUP:
        arguments += ["--cow-warmup", path]
    log = Path(tempfile.mkstemp(dir=site.directory, suffix=".log")[1])
    return server.gunicorn([*arguments, "shop.wsgi"], site.path, log, site.environ)


def in_harness(site: Site, **spec: Any) -> Figures:
    """Run `harness` in a fresh process; see there for the tasks and what they give."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "cowpreload.bench.measure.harness",
            json.dumps(spec),
        ],
        cwd=site.path,
        env={**os.environ, **site.environ},
        check=True,
        stdout=subprocess.PIPE,
        timeout=300,
    )
    figures: Figures = json.loads(done.stdout)
    return figures
