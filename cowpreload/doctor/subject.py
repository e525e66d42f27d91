"""The program that `attend` starts: load an application, warm it, measure its workers.

Takes its orders as JSON, the descriptor to write to and the one that lets it go on;
writes a JSON object a line. It ends by os._exit, without the application's exit
handlers. What it raises is the application's and is told as such; a process of its own
is what the command needs to outlive a hang, a crash or an exit.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import resource
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from cowpreload import _core, mending, origins, writers
from cowpreload.application import load
from cowpreload.audit import Descriptors, audit, descriptors
from cowpreload.candidates import Candidate, Found, Tried
from cowpreload.doctor.ways import (
    Work,
    branch,
    close_before_fork,
    freeze_and_seal,
    worker,
)
from cowpreload.errors import WarmupError, said
from cowpreload.hosts.auto import Automatic
from cowpreload.hosts.forks import FORKS
from cowpreload.hosts.laying import Laying
from cowpreload.kinds import AUTO
from cowpreload.settings import Settings
from cowpreload.settings_given import read
from cowpreload.trial_child import private_memory
from cowpreload.warmup import warm_up
from cowpreload.warmup_user import signed_in
from cowpreload.warmup_visits import Manner

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_LINES = 40  # of a traceback
_SHARE = 0.25  # of the time for all, of the trial and of each worker


class _Run:
    """One run: what is to be done, and where it has got to."""

    def __init__(self, orders: dict[str, Any], writing: int, go: int) -> None:
        self._orders = orders
        self._writing, self._go = writing, go
        self._seconds: float = orders["seconds"] * _SHARE
        self.phase = "loading"

    def send(self, **message: Any) -> None:
        """Write one line whole."""
        self.phase = message.get("phase", self.phase)
        text = json.dumps({**message, "pid": os.getpid()}).encode() + b"\n"
        while text:
            text = text[os.write(self._writing, text) :]

    def hold(self) -> None:
        """Until the command has looked."""
        os.read(self._go, 1)

    def run(self) -> None:
        """All of it; raises what the application raises."""
        self.send(phase="loading")
        before = descriptors()
        end_recording = origins.record()
        small, began = private_memory(), time.monotonic()
        app = load(self._orders["app"])
        loaded = {
            "seconds": time.monotonic() - began,
            "private": private_memory() - small,
            "modules": len(sys.modules),
        }
        self.send(loaded=loaded)
        if not self._orders["only_load"]:
            self._measure(app, before)
        end_recording()

    def _measure(self, app: Any, before: Descriptors) -> None:
        paths = tuple(self._orders["paths"])
        settings = read({})
        settings = replace(
            settings, warmup=(*dict.fromkeys((*settings.warmup_listed, *paths)), AUTO)
        )
        prefix = os.environ.get("SCRIPT_NAME", "").rstrip("/")
        manner = Manner.of(app, settings, prefix)
        laying = Laying(settings, writers.remember)
        with signed_in(
            settings.warmup_user, self._say, settings.warmup_timeout
        ) as cookie:
            manner = replace(manner, cookie=cookie)
            automatic = Automatic(
                app, settings, manner, before, FORKS, self._say, seconds=self._seconds
            )
            survivors = self._try(automatic) if self._orders["pages"] else []
            listed = manner.each_way(map(Candidate, settings.warmup_listed))
            pages = [*listed, *survivors] if self._orders["pages"] else []
            requests = max(self._orders["requests"], 2 * len(pages))
            limit = min(settings.warmup_timeout, self._seconds)
            work = Work(
                app, manner, pages, requests, self._seconds, limit, self.send, self.hold
            )
            close_before_fork()
            for way in ("preload", "cold"):
                branch(way, settings, work)
            mending.disarm()
            laying.begin()
            if pages:
                self.send(phase="warming up")
                warm_up(app, settings, manner, say=self._say)
                automatic.in_master(survivors)
        self._warm(settings, laying, work, before)

    def _warm(
        self, settings: Settings, laying: Laying, work: Work, before: Descriptors
    ) -> None:
        close_before_fork()
        self.send(phase="audit")
        findings = audit(before)
        self.send(audit=[[each.what, each.where, each.advice] for each in findings])
        self.send(phase="freezing")
        frozen, sealed, why_mortal = freeze_and_seal(settings, laying)
        self.send(
            frozen={
                "objects": frozen.objects,
                "immortal": frozen.immortal.objects,
                "why_mortal": why_mortal,
                "faults": frozen.fault_lines(),
                "hot_codes": laying.report.codes,
                "hot_why_not": laying.report.why_not,
                "sealed": sealed.bytes,
                "unsealed": list(sealed.unsealed),
                "seconds": frozen.seconds,
                "heap": _core.heap_size(),
            }
        )
        worker("warm", work)

    def _try(self, automatic: Automatic) -> list[Candidate]:
        """Which pages a warm-up can take; of an application whose routes are not known,
        the first one."""
        self.send(phase="trying pages")
        found = automatic.candidates()
        if not found.candidates and not automatic.settings.warmup_listed:
            note = f"{found.note}; / was requested, name others by --get"
            found = Found((Candidate("/"),), found.left_out, note)
        tried: list[Tried] = []
        note = ""
        if found.candidates:
            tried, note = automatic.trial(found.candidates)
        self.send(
            tried=[
                {"path": each.candidate.shown, "status": each.status,
                 "private": each.private, "dropped": each.dropped}
                for each in tried
            ],
            left_out=len(found.left_out),
            named=len(automatic.settings.warmup_listed),
            note=note or ("" if automatic.settings.warmup_listed else found.note),
        )  # fmt: skip
        return [each.candidate for each in tried if not each.dropped]

    def _say(self, line: str) -> None:
        self.send(said=line)


def _theirs(error: BaseException) -> list[str]:
    """The traceback, from where the application's code begins."""
    if isinstance(error, WarmupError) and error.__cause__ is not None:
        error = error.__cause__
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is None:
        return []
    text = "".join(traceback.format_exception(type(error), error, trace))
    return text.rstrip().splitlines()[-_LINES:]


def _is_ours(path: str) -> bool:
    return path.startswith((_PACKAGE, "<frozen importlib", importlib.__file__))


def main(text: str, writing: int, go: int) -> None:
    """Run what `text` orders, and end this process."""
    orders = json.loads(text)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # nothing is to be written
    faulthandler.enable()
    run = _Run(orders, writing, go)
    try:
        _core.end_with(orders["parent"])
        run.run()
        run.send(done=True)
    except BaseException as error:  # noqa: BLE001 - of the application
        with contextlib.suppress(OSError):
            run.send(error=said(error), traceback=_theirs(error))
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)
