"""The process that is measured, in small: load the site, warm up, freeze, fork, serve.

The stages are the package's own, in the order of the hosts' masters, without a server
around them: nothing but the application writes to the shared heap. Started by
`common.in_harness` in the site's folder, with one JSON object: `task`, `repeat` (of
each warm-up path), `loading_gc` ("on", "off", or "uncollected": off, and frozen
without a collection), `freeze` ("on"), `fill` (what the immortal walk fills; null: the
heap stays mortal), `seal` (true: the holes are filled), `hot` (true: what the warm-up
has run is laid side by side, for which they must be), and what the task takes. Gives
one JSON object on stdout; memory in bytes, times in seconds.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from cowpreload import _core
from cowpreload.closing import close_all
from cowpreload.errors import NativeError
from cowpreload.freezing import freeze
from cowpreload.hosts.laying import Laying
from cowpreload.leave import leave
from cowpreload.records import FreezeReport
from cowpreload.sealing import seal
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
from cowpreload.warmup_wsgi import request_wsgi, wsgi_environ
from measure.common import WARMUP, Figures, mix, whole_mix

App = Callable[..., Any]


class TimedWalk:
    """The walk of the hosts, with other fills, and its time."""

    def __init__(self, fill: int) -> None:
        self.fill = fill
        self.seconds = 0.0

    def __call__(
        self, keep: list[Any], held: Any
    ) -> tuple[str, int, int, int, int, int]:
        begin = time.perf_counter()
        done = _core.immortalize(keep, held, self.fill)
        self.seconds = time.perf_counter() - begin
        return done


def load(
    loading_gc: str,
    repeat: int,
    frozen: bool = True,
    fill: int | None = None,
    sealed: bool = False,
    hot: bool = False,
) -> tuple[App, Figures]:
    """What a host's master does before the first fork, each stage timed."""
    settings = Settings(
        warmup=WARMUP,
        warmup_repeat=max(repeat, 1),
        hot_code="on" if hot else "off",
    )
    laying = Laying(settings, lambda: None)
    threshold = gc.get_threshold()
    if loading_gc != "on":
        gc.set_threshold(0)
    times = [time.perf_counter()]
    app: App = import_module("shop.wsgi").application
    times.append(time.perf_counter())
    laying.begin()
    if repeat:
        warm_up(app, settings)
    close_all()
    times.append(time.perf_counter())
    walk: TimedWalk | None = None
    report: FreezeReport | None = None
    if loading_gc == "uncollected":
        gc.freeze()
    elif frozen:
        walk = None if fill is None else TimedWalk(fill)
        report = freeze(walk, laying.look)
    times.append(time.perf_counter())
    holes = seal(sealed)
    times.append(time.perf_counter())
    gc.set_threshold(*threshold)
    names = ("load", "warm", "freeze", "seal")
    spans = (b - a for a, b in pairwise(times))
    figures: Figures = dict(zip(names, spans, strict=True))
    figures["sealed"] = asdict(holes.after(laying.filled))
    figures["hot"] = asdict(laying.report)
    figures["anonymous"] = _anonymous()
    if walk is not None and report is not None:
        figures |= {"walk": asdict(report.immortal), "walk_seconds": walk.seconds}
    return app, figures


def _anonymous() -> int:
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise LookupError("smaps_rollup: no line Anonymous")


def _serve(app: App, paths: Sequence[str]) -> None:
    for path in paths:
        status = request_wsgi(app, wsgi_environ(path, "localhost"))
        if status != 200:
            raise RuntimeError(f"{path}: answered {status}")


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _parts(app: App) -> int:
    """How many parts the catalogue has."""
    answer = app(wsgi_environ("/browse/", "localhost"), lambda status, headers: None)
    return int(json.loads(b"".join(answer))["parts"])


def serving(app: App, first: int, requests: int, whole: bool = False) -> Figures:
    """Fork one worker; its memory when fresh, after `first` and after all requests."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            paths = whole_mix(requests, _parts(app)) if whole else mix(requests)
            figures = {}
            begin = time.perf_counter()
            for name, part in (
                ("fresh", []),
                ("first", paths[:first]),
                ("end", paths[first:]),
            ):
                _serve(app, part)
                reading = _core.take_reading()
                figures[name] = {
                    "private": reading.private,
                    "shared": reading.shared,
                    "pss": reading.pss,
                    "seconds": time.perf_counter() - begin,
                }
            os.write(write_end, json.dumps(figures).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    given: Figures = json.loads(text)
    return given


class Leaver:
    """A forked worker that served, and leaves when the write end of `gate` closes."""

    def __init__(self, app: App, mode: str, requests: int, gate: tuple[int, int]):
        read_end, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(gate[1])
            _serve(app, mix(requests))
            os.write(write_end, b"%d" % _faults())
            os.read(gate[0], 1)
            if mode == "fast":
                leave(0)
            gc.unfreeze()  # as hosts/gunicorn.py does for cow-exit=normal
            sys.exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            # To the first write, not to the end: the worker keeps its own end open.
            self.faults_before = int(os.read(pipe.fileno(), 64))
        self.private = _core.take_reading(self.pid).private


def leaving(app: App, mode: str, workers: int, requests: int) -> Figures:
    """Fork workers, let them leave all at once; time, faults, most private memory."""
    gate = os.pipe()
    leavers = [Leaver(app, mode, requests, gate) for _ in range(workers)]
    private = {each.pid: each.private for each in leavers}
    before = most = sum(private.values())
    faults, samples = 0, 0
    by_pid = {each.pid: each for each in leavers}
    begin = time.perf_counter()
    os.close(gate[1])
    while by_pid:
        for pid in list(by_pid):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                if status:
                    raise RuntimeError(f"a worker ended with status {status}")
                faults += usage.ru_minflt - by_pid.pop(pid).faults_before
                private[pid] = 0
            elif workers > 1:  # sampling slows what is timed
                private[pid] = _private(pid)
                samples += 1
        most = max(most, sum(private.values()))
        time.sleep(0.0002)
    seconds = time.perf_counter() - begin
    os.close(gate[0])
    return {
        "seconds": seconds,
        "faults": faults,
        "private": before,
        "most_private": most,
        "samples": samples,
    }


def _private(pid: int) -> int:
    try:
        return _core.take_reading(pid).private
    except NativeError:
        return 0  # it has given its memory back and waits to be reaped


def main() -> None:
    """Load, run the task, print what it gave."""
    spec = json.loads(sys.argv[1])
    frozen = spec.get("freeze", "on") == "on"
    app, figures = load(
        spec["loading_gc"],
        spec["repeat"],
        frozen,
        spec.get("fill"),
        spec.get("seal", False),
        spec.get("hot", False),
    )
    if spec["task"] == "serving":
        whole = spec.get("whole", False)
        figures |= serving(app, spec["first"], spec["requests"], whole)
    else:
        runs = [
            {"mode": mode, "workers": workers}
            | leaving(app, mode, workers, spec["requests"])
            for workers, times in spec["groups"]
            for mode in ("fast", "normal") * times
        ]
        figures["runs"] = runs
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
