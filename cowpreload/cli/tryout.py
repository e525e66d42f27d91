"""Run your own application without cowpreload and with it, side by side: does it help?

Plain gunicorn, gunicorn --preload and gunicorn with our worker class (with --uwsgi
uWSGI, too) serve the same requests on free ports of 127.0.0.1, in the environment and
the working directory as they are. Requests are made: name pages that may be read.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from cowpreload.cli import needs
from cowpreload.cli.why import _picture as picture
from cowpreload.errors import NotFoundError

HELP = "run an application without us and with us: does it help, and what to set"
_CONFIG = "gunicorn.conf.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The application, what to request of it, how to show what was found."""
    parser.add_argument("app", help="module, module:name or module:factory()")
    parser.add_argument(
        "--get",
        action="append",
        default=[],
        type=_path,
        metavar="PAGE",  # a path of the site, no file that a shell could complete
        help="a path to request; repeatable (default: / and the routes that the "
        "application has by itself)",
    )
    parser.add_argument(
        "--get-file", type=Path, metavar="FILE", help="more of them, one a line"
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        type=_header,
        metavar="HEADER",
        help="of each request, 'Name: value'; repeatable",
    )
    parser.add_argument("--workers", type=_count, default=4, help="(default: 4)")
    parser.add_argument(
        "--requests", type=_count, default=500, help="to each server (default: 500)"
    )
    parser.add_argument(
        "--config",
        type=_file,
        metavar="FILE",
        help=f"a configuration of gunicorn (default: ./{_CONFIG}, if it is there)",
    )
    parser.add_argument(
        "--worker-class",
        default="",
        metavar="CLASS",
        help="of gunicorn without us (default: the configuration's; sync; for ASGI, "
        "uvicorn's)",
    )
    parser.add_argument(
        "--uwsgi", type=_file, metavar="INI", help="try uWSGI, too, with this ini"
    )
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")
    parser.add_argument(
        "--png",
        type=picture,
        metavar="FILE",
        help="draw the memory (needs the extra plot)",
    )


def _path(text: str) -> str:
    if not text.startswith("/") or not text.isascii() or " " in text:
        raise argparse.ArgumentTypeError(
            f"get={text}: is a path as in a request line; write /search?q=a"
        )
    return text


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError(f"header={text}: write 'Name: value'")
    return name.strip(), value.strip()


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 100_000:
        raise argparse.ArgumentTypeError(f"{text}: is no number above 0; write one")
    return int(text)


def _file(text: str) -> str:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"{text}: is no file; name one")
    return str(Path(text).resolve())


def run(arguments: argparse.Namespace) -> int:
    """Try it; one page on stdout, progress on stderr.

    0 if it was measured, whatever it says; 1 if a mode did not run; 128 + the signal
    that ended it.
    """
    from cowpreload.bench.interrupt import Interrupted, directory, interruptible

    _check(arguments)
    try:
        with interruptible(), directory("cow-try-") as name:
            return _run(arguments, Path(name))
    except Interrupted as stopped:
        _say("interrupted: every server has ended")
        return 128 + int(stopped.args[0])


def _check(arguments: argparse.Namespace) -> None:
    """Refuse, before anything runs, what could not be done."""
    for name in ["gunicorn", *(["uwsgi"] if arguments.uwsgi else [])]:
        beside = Path(sys.executable).parent / name
        if find_spec(name) is None and not beside.exists():
            raise NotFoundError(
                f"{name}: not installed beside this Python; "
                f"pip install 'cowpreload[{name}]'"
            )
    if arguments.png:
        needs.matplotlib("png")


def _run(arguments: argparse.Namespace, work: Path) -> int:
    from cowpreload.bench.machine import versions
    from cowpreload.tryout import plan as plans
    from cowpreload.tryout.as_json import as_json
    from cowpreload.tryout.page import page
    from cowpreload.tryout.probe import probe
    from cowpreload.tryout.run import run as measure

    beside = Path(_CONFIG)
    config = arguments.config or (str(beside.resolve()) if beside.is_file() else "")
    if config:
        _say(f"gunicorn is configured by {config}")
    _say(f"loading {arguments.app}")
    probed = probe(arguments.app, work, config, arguments.worker_class)
    if arguments.uwsgi and probed.interface != "WSGI":
        raise NotFoundError(f"uwsgi={arguments.uwsgi}: serves no ASGI; leave it out")
    given = [*arguments.get, *_listed(arguments.get_file)]
    plan = plans.make(
        arguments.app,
        probed,
        given,
        arguments.workers,
        arguments.requests,
        arguments.header,
        config,
        arguments.uwsgi or "",
    )
    _say(_found(plan.found, probed.note) if not given else f"{len(given)} paths given")
    tried = measure(plan, Path.cwd(), work, versions(), _say)
    print(as_json(tried) if arguments.json else page(tried))
    if arguments.png:
        from cowpreload.tryout.picture import draw

        draw(tried, arguments.png)
        _say(f"wrote {arguments.png}")
    return int(any(each.error for each in tried.ways))


def _listed(path: Path | None) -> list[str]:
    """The paths of a file, one a line; comments begin with #."""
    lines = path.read_text().splitlines() if path else []
    named = [line.strip() for line in lines if line.strip() and line[0] != "#"]
    try:
        return [_path(each) for each in named]
    except argparse.ArgumentTypeError as error:
        raise NotFoundError(str(error)) from error


def _found(found: tuple[str, ...], note: str) -> str:
    shown = ", ".join(found[:8]) + (" ..." if len(found) > 8 else "")
    text = f"no --get: requesting / and what the application's routes name: {shown}"
    return f"{text} ({note})" if note else text


def _say(text: str) -> None:
    """Progress, on stderr."""
    print(f"try: {text}", file=sys.stderr, flush=True)
