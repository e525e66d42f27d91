"""What a server of ours loads of a Django site before its first fork, unasked.

A warm-up of pages compiles the templates that these pages use; a page behind a number
or a login has others. Called in the master, as a `before_fork` callback, once; reads
files and imports modules, opens nothing else. What fails here is said on stderr and
stays cold; it ends no start.

Measured on the example site (docs/django.md): templates save a worker 0.8 MiB beside
`cow-warmup = auto`, and 1.4 without a warm-up, where the URLconf saves 0.9. Caches of
models, queries and backends, the modules that settings name and translations saved less
than 0.2 each and are left out.
"""

from __future__ import annotations

import contextlib
import os
import sysconfig
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from cowpreload.errors import RAISED, said
from cowpreload.trial_child import private_memory
from cowpreload.units import MIB, format_size

# A distribution may bring thousands of templates that nobody uses: what the master
# holds of those, it holds for nothing.
_MOST_BYTES = 8 * MIB
_MOST_SECONDS = 2.0
_TEXTS = (".html", ".htm", ".txt", ".xml")
_LIBRARIES = tuple(
    os.path.join(sysconfig.get_paths()[name], "") for name in ("purelib", "platlib")
)

_done: list[bool] = []


def warm() -> None:
    """Load all of it, once in this process."""
    if _done:
        return
    _done.append(True)
    began, before, counts = time.monotonic(), private_memory(), []
    for name, load in _STEPS.items():
        try:
            counts.append(f"{name}={load()}")
        except RAISED as error:
            _say(f"cow: django {name}: raised {said(error)}; left cold")
    grown = format_size(max(0, private_memory() - before))
    seconds = time.monotonic() - began
    _say(f"cow: django {' '.join(counts)} private={grown} seconds={seconds:.2f}")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode(errors="backslashreplace"))


def load_urls() -> int:
    """Import the URLconf, and fill what resolves and reverses; the number of views."""
    from django.urls import get_resolver

    resolver = get_resolver()
    return len(resolver.reverse_dict)


def compile_templates() -> int:
    """Those of cached loaders, the site's own first; how many were compiled."""
    until, most = time.monotonic() + _MOST_SECONDS, private_memory() + _MOST_BYTES
    count = 0
    for _, loader, name in sorted(_templates(), key=itemgetter(0)):
        try:
            loader.get_template(name)
        except RAISED:
            continue  # of a library that is not installed, or meant for no one
        count += 1
        if time.monotonic() > until or (not count % 16 and private_memory() > most):
            break
    return count


def _templates() -> Iterator[tuple[bool, Any, str]]:
    """Whether it is a library's, each cached loader, and a name that it can load."""
    from django.template import engines
    from django.template.loaders.cached import Loader

    for each in engines.all():
        for loader in getattr(getattr(each, "engine", None), "template_loaders", ()):
            if isinstance(loader, Loader):
                for folder in dict.fromkeys(map(str, loader.get_dirs())):
                    for name in _files(folder):
                        yield folder.startswith(_LIBRARIES), loader, name


def _files(folder: str) -> Iterator[str]:
    for home, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith(_TEXTS):
                yield os.path.relpath(os.path.join(home, name), folder)


_STEPS: dict[str, Callable[[], int]] = {
    "urls": load_urls,
    "templates": compile_templates,
}
