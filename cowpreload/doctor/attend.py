"""Start the subject, read what it writes, look at its worker, end it in time.

Takes an application's name and what to do; gives Seen: what the subject said, `why` of
its warm worker, and how it ended. All that it started is gone afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from cowpreload.causes import Sharing
from cowpreload.doctor.interpreter import DEBUG_VARIABLES
from cowpreload.errors import CowError
from cowpreload.why.examine import examine

# Without the working directory: a json.py there is the application's, once it loads.
_PROGRAM = """
import sys
sys.path[:] = [each for each in sys.path if each]
from cowpreload.doctor.subject import main
main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
"""
_KEPT = 16384  # bytes of what the application prints
_DYING_SECONDS = 2.0  # for the stacks of one that hangs


@dataclass(frozen=True)
class Orders:
    """What to do with an application.

    Attributes:
        paths: pages to warm and to request besides those that are found.
        pages: whether any page is requested.
        requests: of each worker.
        seconds: that all of it may take.
    """

    app: str
    paths: Sequence[str] = ()
    pages: bool = True
    requests: int = 200
    seconds: float = 60.0


@dataclass
class Seen:
    """What came of it.

    Attributes:
        said: the subject's messages by their first key, the last of each.
        workers: those of `worker` messages, by way.
        lines: log lines.
        sharing: why the warm worker's memory is private, or `why_not`.
        phase: where the subject was last.
        overdue: it was ended because the time was over.
        done: it came to its end.
        printed: the last of what the application has printed.
        clean_private: bytes of a load without debug hooks, where some are on.
    """

    said: dict[str, Any] = field(default_factory=dict)
    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    sharing: Sharing | None = None
    why_not: str = ""
    phase: str = "starting"
    overdue: bool = False
    done: bool = False
    printed: str = ""
    clean_private: int = 0


def attend(orders: Orders, *, debugging: bool, progress: Callable[[str], None]) -> Seen:
    """See it through.

    Args:
        debugging: debug hooks are on; what a load takes without them is seen too.
        progress: is told what comes next.
    """
    seen = _Attendance(orders, progress).run()
    if debugging and seen.done:
        progress("loading without debug hooks")
        environ = {k: v for k, v in os.environ.items() if k not in DEBUG_VARIABLES}
        clean = _Attendance(orders, progress, only_load=True, environ=environ).run()
        seen.clean_private = clean.said.get("loaded", {}).get("private", 0)
    return seen


class _Attendance:
    """One run of the subject."""

    def __init__(
        self,
        orders: Orders,
        progress: Callable[[str], None],
        *,
        only_load: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._orders, self._progress = orders, progress
        self._only_load, self._environ = only_load, environ
        self._seen = Seen()
        self._deepest = 0  # the process that wrote last
        self._session = -1
        self._text = b""

    def run(self) -> Seen:
        reading, writing = os.pipe()
        go, going = os.pipe()
        self._going = going
        process = self._start(writing, go)
        self._session = process.pid
        os.close(writing)
        os.close(go)
        try:
            assert process.stdout is not None
            self._read(reading, process.stdout)
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            os.close(reading)
            os.close(going)
        self._seen.said["exit"] = process.returncode
        return self._seen

    def _start(self, writing: int, go: int) -> subprocess.Popen[bytes]:
        orders = {
            "app": self._orders.app,
            "paths": list(self._orders.paths),
            "pages": self._orders.pages,
            "requests": self._orders.requests,
            "seconds": self._orders.seconds,
            "only_load": self._only_load,
            "parent": os.getpid(),
        }
        # -X dev and the like are ours to hand on, unless they are to be left off.
        flags = [] if self._only_load else subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        # -B: nothing is written, no compiled file either.
        command = [sys.executable, "-B", *flags, "-c", _PROGRAM, json.dumps(orders)]
        return subprocess.Popen(
            [*command, str(writing), str(go)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(writing, go),
            start_new_session=True,
            env=dict(self._environ),
        )

    def _read(self, messages: int, printed: IO[bytes]) -> None:
        """Until the subject has closed its pipe, or the time is over."""
        until = time.monotonic() + self._orders.seconds
        with selectors.DefaultSelector() as selector:
            selector.register(messages, selectors.EVENT_READ, self._message)
            selector.register(printed, selectors.EVENT_READ, self._printed)
            while messages in selector.get_map():
                left = until - time.monotonic()
                if left <= 0 and self._seen.overdue:
                    return
                if left <= 0:
                    self._seen.overdue = True
                    until += _DYING_SECONDS
                    self._show_stack()
                    continue
                for key, _ in selector.select(left):
                    text = os.read(key.fd, 65536)
                    if text:
                        key.data(text)
                    else:
                        selector.unregister(key.fileobj)
                if self._seen.done:
                    return

    def _show_stack(self) -> None:
        """faulthandler prints where it hangs, and the process ends."""
        with contextlib.suppress(OSError):
            # One that has ended may have left its pid to a stranger.
            if self._deepest and os.getsid(self._deepest) == self._session:
                os.kill(self._deepest, signal.SIGABRT)

    def _printed(self, text: bytes) -> None:
        tail = (self._seen.printed + text.decode(errors="replace"))[-_KEPT:]
        self._seen.printed = tail

    def _message(self, text: bytes) -> None:
        *lines, self._text = (self._text + text).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    self._take(found)

    def _take(self, message: dict[str, Any]) -> None:
        seen = self._seen
        if seen.overdue:
            return  # where one that hung was ended, another goes on
        self._deepest = int(message.pop("pid", 0))
        if "phase" in message:
            seen.phase = message["phase"]
            self._progress(seen.phase)
        elif "worker" in message:
            seen.workers[message["worker"]["way"]] = message["worker"]
        elif "said" in message:
            seen.lines.append(message["said"])
        elif "held" in message:
            self._progress("asking why")
            self._why(message["held"])
            os.write(self._going, b".")
        elif "done" in message:
            seen.done = True
        else:
            seen.said |= message

    def _why(self, pid: int) -> None:
        try:
            self._seen.sharing = examine(pid)
        except (CowError, OSError) as error:
            self._seen.why_not = str(error)
