"""The uWSGI side that needs the native core: main interpreter only.

plugin/bridge.c calls these functions. They give a number; None or an exception is a
refusal that has been printed. What runs in every interpreter is in uwsgi_apps.py.
"""

from __future__ import annotations

import os
import time
from functools import partial

from cowpreload import _core, freezes, healing, warmings, watch, writers
from cowpreload._core import ffi, lib
from cowpreload._version import __version__
from cowpreload.audit import Descriptors, descriptors
from cowpreload.board import Board
from cowpreload.errors import NativeError, SettingsError
from cowpreload.event_log import EVENT_LOG, tell
from cowpreload.hosts import (
    uwsgi_apps,
    uwsgi_events,
    uwsgi_keeping,
    uwsgi_serving,
    uwsgi_turn,
)
from cowpreload.hosts.budgeting import BUDGETING
from cowpreload.hosts.laying import Laying
from cowpreload.hosts.stages import run_merge
from cowpreload.hosts.unasked import unasked
from cowpreload.hosts.uwsgi_apps import reported, say, say_raised
from cowpreload.hosts.uwsgi_known import Known
from cowpreload.immortal import WHY_NOT, plan
from cowpreload.kinds import UWSGI
from cowpreload.lifecycle import warm_up
from cowpreload.records import PreloadReport, SealReport
from cowpreload.sealing import seal
from cowpreload.served import choose, wanted
from cowpreload.settings import Settings
from cowpreload.settings_given import read, unknown_faults, unknown_variables
from cowpreload.slots import slot_faults
from cowpreload.warmed import Warming
from cowpreload.warmings import Measuring


class _State:
    """What the main interpreter of this process knows between the phases."""

    board: Board
    settings: Settings
    workers: int
    began: float
    api: object
    before: Descriptors
    laying: Laying
    measuring: Measuring
    watch: watch.Watch | None = None
    slot: int = 0
    warming: Warming


_state = _State()


def _host_faults(workers: int, lazy: int, master: int, loop: int) -> list[str]:
    faults = []
    if lazy:
        faults.append(
            "lazy-apps=true: each worker would load its own application and there "
            "is nothing to share; remove it"
        )
    if not master:
        faults.append(
            "master=false: only a master can fork fresh workers; add master = true"
        )
    if loop:
        faults.append(
            "async, gevent or loop: uWSGI drops the requests in flight of such a "
            "worker when it leaves; use processes and threads"
        )
    return faults + slot_faults("processes", workers)


@reported
def configure(
    text: str,
    version: str,
    workers: int,
    lazy: int,
    master: int,
    loop: int,
    event_log: int,
) -> int | None:
    """Phase preinit_apps, master: read the settings, make the board.

    Args:
        event_log: the file of that option, opened before privileges were dropped; -1.

    Returns:
        The address of the C core's cow_api, or None: every fault was printed.
    """
    _state.began = time.monotonic()
    faults = _host_faults(workers, lazy, master, loop)
    if version != __version__:
        faults.append(
            f"plugin={version}: built by another cowpreload than {__version__}; "
            "run: cowpreload plugin build"
        )
    given, unknown = uwsgi_apps.parse(text)
    faults += unknown_faults(unknown, UWSGI)
    misspelt, note = unknown_variables()
    faults += misspelt
    try:
        _state.settings = read(given, faults=faults, immortal_why_not=WHY_NOT)
    except SettingsError as error:
        say("cow: the settings are refused:")
        for fault in error.faults:
            say(f"cow:   {fault}")
        return None
    _state.workers = workers
    if not uwsgi_events.begin(_state.settings, event_log):
        return None
    if note:
        say(note)
    try:
        _state.board = Board.create(f"uWSGI {uwsgi_events.version()}".strip())
    except NativeError as error:
        say(f"cow: no board ({error}); shared memory is needed")
        return None
    if _state.board.hidden:
        say(_state.board.hidden)
    choose(_state.board, _state.settings)
    try:
        _core.take_reading()
    except NativeError as error:
        say(f"cow: memory unreadable ({error}): serving on without limits")
    _state.laying = Laying(_state.settings, writers.remember)
    healing.begin(_state.settings)
    _state.before = descriptors()
    uwsgi_apps.begin_loading(_state.settings, _state.before, _state.laying.look)
    uwsgi_keeping.begin(_state.settings)
    api = ffi.new("struct cow_api *")
    lib.cow_api_fill(_state.board.raw, api)
    _state.api = api
    return int(ffi.cast("uintptr_t", api))


@reported
def loaded(mounts: list[str]) -> str:
    """The applications are loaded, the warm up begins: what they have to know."""
    _state.laying.begin()
    _state.measuring = Measuring()
    return Known(_state.before, uwsgi_keeping.found(mounts)).text()


@reported
def warmed(requests: int, of_file: int, of_routes: int) -> int:
    """The warm up is over, in all interpreters.

    Args:
        of_file, of_routes: pages that were warmed and that nobody has listed.
    """
    sources = ["list" for _ in set(_state.settings.warmup_listed)]
    sources += ["file"] * of_file + ["route"] * of_routes
    _state.warming = _state.measuring.of(sources, requests)
    return 0


@reported
def exits_fast() -> int:
    """1 if workers leave by os._exit."""
    return int(_state.settings.exit == "fast")


@reported
def after_request() -> int:
    """What workers do then: 1, note what they served; 2, heal; 3, both."""
    return wanted(_state.settings) + 2 * (_state.settings.merge == "self")


@reported
def immortal() -> int:
    """1 if the heap is to become immortal; under `auto`, says why if not."""
    walk, why_not = plan(_state.settings)
    if why_not:
        say(f"cow: immortal=off: {why_not}")
    return int(walk is not None)


@reported
def allow_fork(findings: int) -> int | None:
    """None if the audit's findings forbid the start."""
    if findings and _state.settings.fork_safety == "strict":
        say(
            f"cow: fork-safety=strict: {findings} findings; "
            "mend them, or set it to warn"
        )
        return None
    return 0


@reported
def sealed(
    warmed: int, findings: int, objects: int, immortal: int, freeze_ms: int
) -> int:
    """The heap is frozen: seal it, and sum up the preload in one line."""
    settings, filled = _state.settings, SealReport()
    if settings.freeze == "on":
        filled = seal(settings.seal == "on")
    for line in _state.laying.report.lines() + filled.left_lines():
        say(line)
    run_merge(settings, say)
    report = PreloadReport(
        objects=objects,
        immortal=immortal,
        hot=_state.laying.report.codes,
        sealed=filled.after(_state.laying.filled).bytes,
        heap=_core.heap_size(),
        warmup_requests=warmed,
        findings=findings,
        seconds=time.monotonic() - _state.began,
        freeze_seconds=freeze_ms / 1000 if settings.freeze == "on" else 0.0,
    )
    if _state.warming.pages:
        EVENT_LOG.write(partial(warm_up, _state.warming))
    tell(report, say)
    with unasked("record of the warm up", say_raised):
        warmings.add(_state.board, _state.warming)
    if settings.freeze == "on":
        freezes.add(_state.board, objects, immortal, freeze_ms / 1000, report.heap)
    uwsgi_turn.begin(settings.check_interval)
    BUDGETING.tell(_state.board, settings, say, say_raised)
    uwsgi_turn.each_turn(partial(BUDGETING.turn, _state.board))
    with unasked("warm up anew", say_raised):
        turns = uwsgi_serving.at_turns(_state.board, settings, immortal > 0)
        if turns is not None:
            master = uwsgi_serving.UwsgiMaster()
            uwsgi_turn.each_turn(partial(turns.turn, master))
    uwsgi_keeping.serve(_state.board, settings)
    uwsgi_events.serve(_state.board)
    return 0


@reported
def begin(
    slot: int, mercy: int, ask_to_leave: int, exit_now: int, requests: int, busy: int
) -> int:
    """Phase post_fork, worker: take the slot and start the watching thread.

    Args:
        slot: the worker's number.
        mercy: worker-reload-mercy, in seconds.
        ask_to_leave, exit_now, requests, busy: addresses, as watch.Host has them.
    """
    EVENT_LOG.close()
    limits = _state.settings.limits(_state.workers, mercy)
    host = watch.Host(
        ask_to_leave=ask_to_leave, exit_now=exit_now, requests=requests, busy=busy
    )
    try:
        _core.check(lib.cow_slot_boot(_state.board.raw, slot, os.getpid()))
        _state.slot = slot
        _state.watch = watch.start(_state.board, slot, limits, host)
    except NativeError as error:
        say(f"cow: worker={slot} not watched ({error}): serving on without limits")
    return 0


@reported
def after_fork_failed(slot: int) -> int:
    """An after_fork callback has raised: no worker would do better at the start."""
    board = _state.board.raw
    ends = not board.started and lib.cow_board_refuse(board, slot)
    then = "the start ends" if ends else "the worker ends"
    say(f"cow: worker={slot} after_fork callback failed: {then}; mend the callback")
    return 0


@reported
def ready() -> int | None:
    """Phase hijack_worker, worker: it can serve. None: the limit is unreachable."""
    if _state.watch is None:
        _state.board.raw.started = 1  # it serves: what fails later ends no server
        if _state.slot:  # who is not ready there is not told again to end
            _state.board.raw.slot[_state.slot - 1].life.state = lib.COW_READY
        return 0
    found = _state.watch.ready(_state.settings.jitter)
    if found.text:
        say(found.text)
    return None if found.refused else 0


@reported
def leaving() -> int:
    """The worker is at its exit handlers."""
    if _state.watch is not None:
        _state.watch.leaving()
    return 0
