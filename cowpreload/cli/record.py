"""Record servers' memory over time: one JSON line a reading, as `status --json` has it.

Goes on until Ctrl-C, SIGTERM or --for ends it, and leaves whole lines. A disk that is
full is said, and the next reading tried again. `cowpreload plot` draws the file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from cowpreload.cli.lines import LineFile
from cowpreload.errors import RAISED, NativeError, NotFoundError, said
from cowpreload.report.status_json import status_object
from cowpreload.view import ServerView

HELP = "record servers' memory over time, as JSON lines"
# A line of a server with 4 workers is 3 KB: 25 MB a day.
_INTERVAL = 10.0
_LEAST = 0.1
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The server, the file, how often and how long."""
    from cowpreload.cli import who

    who.add_argument(parser, "default: all servers of this user, new ones too")
    parser.add_argument(
        "--output", metavar="FILE", required=True, help="lines are added; -: stdout"
    )
    parser.add_argument(
        "--interval",
        type=duration,
        default=_INTERVAL,
        metavar="S",
        help=f"between two readings: 0.5, 10s, 2m (default: {_INTERVAL:g})",
    )
    parser.add_argument(
        "--for",
        type=duration,
        dest="seconds",
        metavar="S",
        help="end after this long: 90, 10m, 6h, 2d (default: at Ctrl-C)",
    )


def duration(text: str) -> float:
    """Seconds of `2.5`, `10s`, `5m`, `6h` or `2d`."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not _LEAST <= seconds < 1e9:
        raise argparse.ArgumentTypeError(
            f"{text}: is no duration of {_LEAST:g} s or more; write 30, 10m, 6h or 2d"
        )
    return seconds


def run(arguments: argparse.Namespace) -> int:
    """Record until it is ended; 0 then."""
    take = taker(arguments.who)
    end = _told_to_end()
    with LineFile(arguments.output) as file:
        _say(f"every {arguments.interval:g} s to {file.name}; Ctrl-C ends it")
        count = _record(take, file, arguments.interval, arguments.seconds, end)
    _say(f"{count} readings in {file.name}")
    return 0


def taker(who_text: str) -> Callable[[], list[ServerView]]:
    """What takes one reading of what is meant.

    Raises:
        NotFoundError: what is named is no server.
    """
    from contextlib import closing

    from cowpreload import servers
    from cowpreload.cli import who

    if not who_text:
        return servers.running
    with closing(who.server(who_text)) as board:
        master = board.seen(board.master_pid) or board.holder

    def take() -> list[ServerView]:
        try:
            return [servers.look_at(master)]
        except (NotFoundError, NativeError):
            # uWSGI's reload executes itself: for seconds, its master has no board.
            if Path("/proc", str(master)).exists():
                return []
            raise

    return take


def _told_to_end() -> threading.Event:
    """Set by whatever ends a command: a whole line is written first."""
    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, lambda *_: end.set())
    return end


def _record(
    take: Callable[[], list[ServerView]],
    file: LineFile,
    interval: float,
    seconds: float | None,
    end: threading.Event,
) -> int:
    """How many readings were written."""
    began = next_at = time.monotonic()
    count, fault, none_said = 0, "", False
    while not end.is_set():
        try:
            views = take()
        except (NotFoundError, NativeError) as error:
            _say(f"the server has ended ({error})")
            break
        except RAISED as error:  # a recording of hours goes on
            _say(f"not read: {said(error)}; tried again at the next reading")
        else:
            if not views and not none_said:
                _say("no server runs now; one that starts is recorded")
                none_said = True
            line = json.dumps(status_object(views, time.time()), separators=(",", ":"))
            before, fault = fault, file.add(line)
            if file.reader_left:
                break
            count += not fault
            if fault and fault != before:
                _say(f"{file.name}: {fault}; tried again at the next reading")
            if before and not fault:
                _say(f"{file.name}: written again")
        next_at = max(next_at + interval, time.monotonic())
        if seconds is not None and next_at - began >= seconds:
            break
        end.wait(next_at - time.monotonic())
    return count


def _say(text: str) -> None:
    try:
        print(f"record: {text}", file=sys.stderr, flush=True)
    except OSError:  # a terminal that was closed ends no recording
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 2)
