"""Say of machine, interpreter, servers and an application what costs memory or breaks.

Nothing is changed and nothing is written. An application is loaded in a process of its
own, and its pages are requested there: of those that auto finds, or that --get names.
Exit status 0: nothing is bad; 1: something is, or the command failed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cowpreload.diagnosis import Diagnosis

HELP = "look for what costs memory or breaks: machine, Python, servers, application"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The application, what to request of it, and the form of the report."""
    parser.add_argument(
        "app",
        nargs="?",
        default="",
        help="module, module:name or module:factory(), as gunicorn takes it",
    )
    parser.add_argument(
        "--get",
        metavar="PAGE",
        action="append",
        default=[],
        help="a page to warm and to request, besides those that are found",
    )
    parser.add_argument(
        "--no-pages", action="store_true", help="load and fork it, request nothing"
    )
    parser.add_argument(
        "--requests",
        type=_number,
        metavar="N",
        default=200,
        help="that each worker serves (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=_number,
        metavar="SECONDS",
        default=120,
        help="that the application has for all of it (default: %(default)s)",
    )
    parser.add_argument(
        "--uwsgi", metavar="PATH", help="the binary (default: as plugin build)"
    )
    parser.add_argument(
        "--plugin",
        metavar="DIRECTORY",
        type=Path,
        default=Path(sys.prefix) / "lib" / "cowpreload",
        help="where the uWSGI plugin was built (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text}: is no number from 1 to 1000000")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Print one page; progress on stderr, where that is a terminal."""
    from cowpreload.cli.plugin import find_uwsgi
    from cowpreload.doctor.checks import INTERPRETER, MACHINE, part
    from cowpreload.doctor.interpreter import read_interpreter
    from cowpreload.doctor.machine import read_machine
    from cowpreload.doctor.server_checks import SERVERS
    from cowpreload.doctor.servers import read_servers
    from cowpreload.report.doctor import doctor_json, doctor_text

    interpreter = read_interpreter()
    servers = read_servers(find_uwsgi(arguments.uwsgi), arguments.plugin.resolve())
    found = Diagnosis(
        (
            part("machine", MACHINE, read_machine()),
            part("interpreter", INTERPRETER, interpreter),
            part("servers", SERVERS, servers),
        )
    )
    if arguments.app:
        found = _with_application(found, arguments, debugging=interpreter.is_debugging)
    print((doctor_json if arguments.json else doctor_text)(found))
    return 1 if found.is_bad else 0


def _with_application(
    found: Diagnosis, arguments: argparse.Namespace, *, debugging: bool
) -> Diagnosis:
    from cowpreload.doctor import findings
    from cowpreload.doctor.attend import Orders, attend

    orders = Orders(
        arguments.app,
        arguments.get,
        not arguments.no_pages,
        arguments.requests,
        float(arguments.timeout),
    )
    seen = attend(orders, debugging=debugging, progress=_say)
    return Diagnosis(
        (*found.parts, findings.application(seen, arguments.app)),
        findings.advise(seen),
        findings.printed(seen),
    )


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"doctor: {text}", file=sys.stderr, flush=True)
