"""What the application is: loaded once, in a process of its own, as gunicorn loads it.

Takes its name; gives a Probed. What loading it raises is the application's own and is
shown as it is. Nothing is requested of it.

    python -m cowpreload.tryout.probe APP RESULT CONFIG WORKER_CLASS
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from cowpreload.errors import NotFoundError
from cowpreload.tryout.logs import tail
from cowpreload.tryout.own_config import classes, skipped
from cowpreload.tryout.records import Probed

SECONDS = 300.0  # that an application may take to load
# Files of the frames between this one and the application's.
_ON_THE_WAY = re.compile(r"tryout/probe\.py$|gunicorn/util\.py$|importlib")


def probe(app: str, directory: Path, config: str = "", worker: str = "") -> Probed:
    """Load `app` in a child; `directory` is for what it writes.

    Args:
        config: a gunicorn.conf.py, or "".
        worker: the class that the user named, or "".

    Raises:
        NotFoundError: it cannot be loaded; the text has its own error.
    """
    result, log = directory / "probe.json", directory / "probe.log"
    module = [sys.executable, "-m", "cowpreload.tryout.probe"]
    command = [*module, app, str(result), config, worker]
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        code = child.wait(SECONDS)
    except subprocess.TimeoutExpired:
        raise NotFoundError(
            f"app={app}: was not loaded within {SECONDS:.0f} s; its output ends with\n"
            f"{tail(log.read_text(errors='replace'))}"
        ) from None
    finally:
        child.kill()
        child.wait()
    if code or not result.exists():
        raise NotFoundError(
            f"app={app}: cannot be loaded (exit status {code}); its own error:\n"
            f"{tail(log.read_text(errors='replace'))}"
        )
    found = json.loads(result.read_text())
    lines = tuple((name, value) for name, value in found["cow_lines"])
    return Probed(**{**found, "routes": tuple(found["routes"]), "cow_lines": lines})


def look(app: str, config: str, worker: str) -> Probed:
    """In the child: load it and ask for its routes."""
    from gunicorn.util import import_app

    from cowpreload.interface import Interface, kind_of
    from cowpreload.routes import find

    sys.path.insert(0, os.getcwd())
    began = time.monotonic()
    loaded = import_app(app)
    seconds = time.monotonic() - began
    asgi = kind_of(loaded) in (Interface.ASGI, Interface.ANY_ASGI)
    found = find(loaded, skip=skipped(config))
    worker_class, cow_lines = classes(config, worker, asgi)
    return Probed(
        "ASGI" if asgi else "WSGI",
        tuple(dict.fromkeys(each.path for each in found.candidates)),
        found.note,
        round(seconds, 3),
        worker_class,
        cow_lines,
    )


def _main(app: str, result: str, config: str, worker: str) -> int:
    try:
        Path(result).write_text(json.dumps(asdict(look(app, config, worker))))
    except NotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    except BaseException as error:  # noqa: BLE001 - an application may raise any
        _show(error)
        return 1
    return 0


def _show(error: BaseException) -> None:
    """The application's own traceback, without the way to it."""
    trace = error.__traceback__
    while trace and _ON_THE_WAY.search(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    # gunicorn says in its own error what was not found.
    chain = not type(error).__module__.startswith("gunicorn")
    traceback.print_exception(type(error), error, trace, chain=chain)


if __name__ == "__main__":
    code = _main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # an application's threads may not end
