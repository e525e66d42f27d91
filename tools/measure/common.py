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
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from cowpreload.bench import server
from cowpreload.bench.server import Server
from cowpreload.bench.site import WARMUP, Site, find_site, seeded, whole_mix
from cowpreload.bench.stats import Figures, spread

__all__ = ["WARMUP", "Figures", "Site", "spread", "whole_mix"]

TOOLS = Path(__file__).parent.parent
_WORDS = ("lamp", "chair", "wooden", "red", "steel lamp")


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


@contextlib.contextmanager
def example_site(given: Path | None, **variables: str) -> Iterator[Site]:
    """The example site with a fresh, seeded database and these SHOP_ variables."""
    end_cleanly()
    try:
        path = find_site(given)
    except LookupError as error:
        sys.exit(f"{error}; give the example site by --site PATH")
    with seeded(path, **variables) as site:
        yield site


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
            "measure.harness",
            json.dumps(spec),
        ],
        cwd=site.path,
        env={**os.environ, **site.environ, "PYTHONPATH": str(TOOLS)},
        check=True,
        stdout=subprocess.PIPE,
        timeout=1800,  # a busy machine
    )
    figures: Figures = json.loads(done.stdout)
    return figures
