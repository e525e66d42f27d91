"""The example site: where it is, a seeded copy of its data, what is requested of it.

It lies in the wheel as cowpreload/examples/ (setup.py puts it there) and in a
checkout beside the package.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import cowpreload
from cowpreload.bench.interrupt import directory
from cowpreload.bench.server import Server
from cowpreload.errors import NotFoundError

# What scenarios warm: one path for each kind of page.
WARMUP = ("/", "/product/1/", "/search/?q=lamp", "/browse/1/")
# What the example's own configurations warm.
FOUND_AND_LISTED = ("auto", "/product/1/", "/browse/1/")
SKIPPED = ("/nelson/", "/probe/")


@dataclass(frozen=True)
class Site:
    """The example site with a database of its own, and room for logs."""

    path: Path
    directory: Path
    environ: Mapping[str, str]


def find_site(given: Path | None = None) -> Path:
    """The folder of the example site: given, in the wheel, or in the checkout.

    Raises:
        NotFoundError: there is none.
    """
    package = Path(cowpreload.__file__).parent
    places = [given] if given else [package / "examples", package.parent / "examples"]
    for place in places:
        path = place if given else place / "django_app"
        if (path / "manage.py").exists():
            return path.resolve()
    raise NotFoundError(f"{places[0]}: no manage.py of the example site here")


@contextlib.contextmanager
def seeded(path: Path, **variables: str) -> Iterator[Site]:
    """The site at `path` with a fresh, seeded database and these SHOP_ variables."""
    with directory("cow-bench-") as name:
        environ = {"SHOP_DB": str(Path(name) / "shop.sqlite3"), **variables}
        # Its output is kept back: interrupted, it would show a traceback of its own.
        done = subprocess.run(
            [sys.executable, "manage.py", "seed"],
            cwd=path,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise NotFoundError(f"{path}: cannot be filled with data\n{done.stderr}")
        yield Site(path, Path(name), environ)


def whole_mix(count: int, parts: int) -> list[str]:
    """The paths of `count` requests that read the whole catalogue, and others."""
    return [_path(number, parts) for number in range(count)]


def browsing(server: Server, count: int) -> list[str]:
    """The same for the catalogue that `server` holds."""
    return whole_mix(count, int(json.loads(server.get("/browse/")[1])["parts"]))


def _path(number: int, parts: int) -> str:
    kind = number % 5
    if kind == 0:
        return f"/?page={number % 40 + 1}"
    if kind == 1:
        return f"/product/{number * 7 % 2000 + 1}/"
    if kind == 2:
        return "/search/?q=lamp"
    return f"/browse/{number * 31 % parts + 1}/"
