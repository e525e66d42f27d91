"""The uWSGI side that runs in every interpreter of the process.

uWSGI may give each application an interpreter of its own, with its own collector,
threads and exit handlers. Called by plugin/bridge.c in each of them. Must not import
the native core, which has one state for the whole process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from cowpreload import callbacks, collector, leave, mending, origins, writers
from cowpreload.audit import Descriptors, audit
from cowpreload.closing import close_all
from cowpreload.event_log import EVENT_LOG, tell
from cowpreload.freezing import Walk, freeze, leave_mortal, thaw
from cowpreload.kinds import UWSGI, RawValue
from cowpreload.settings import Settings, declared_on
from cowpreload.settings_given import read

Function = TypeVar("Function", bound=Callable[..., Any])

_loading: dict[str, Any] = {
    "before": frozenset(),
    "resume_gc": lambda: None,
    "end_recording": None,
    "look": writers.remember,
}


def say(line: str) -> None:
    """One line to uWSGI's log, which is descriptor 2; whole, in one write.

    What cannot be said (a full disk, a full pipe) must not end a start or a server.
    """
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode(errors="backslashreplace"))


def say_traceback(error: BaseException) -> None:
    """What uWSGI would print of an exception; not by sys.stderr, which can raise."""
    with contextlib.suppress(Exception):
        say("".join(traceback.format_exception(error)).rstrip())


def say_raised(line: str) -> None:
    """One line, and the traceback of the exception that is being handled."""
    error = sys.exc_info()[1]
    if error is not None:
        say_traceback(error)
    say(line)


def reported(function: Function) -> Function:
    """Print what `function` raises and give None: for callers in C.

    SystemExit of an application too, which PyErr_Print() would obey.
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            say_traceback(error)
            return None

    return cast(Function, call)


def parse(text: str) -> tuple[dict[str, RawValue], list[str]]:
    """Split `name<TAB>value` lines into raw settings and unknown names."""
    by_option = {each.option: each for each in declared_on(UWSGI)}
    given: dict[str, Any] = {}
    unknown = []
    for line in text.splitlines():
        name, _, value = line.partition("\t")
        # uWSGI itself takes an underscore for a hyphen.
        name = name.replace("_", "-")
        declared = by_option.get(name)
        if declared is None:
            unknown.append(name)
        elif declared.repeatable:
            given.setdefault(declared.attribute, []).append(value)
        else:
            given[declared.attribute] = value
    return given, unknown


def settings_of(text: str) -> Settings:
    """The settings again: hosts/uwsgi.py has checked them in the main interpreter."""
    return read(parse(text)[0])


def record_origins() -> None:
    """In a further interpreter, where `begin_loading` was not called."""
    if _loading["end_recording"] is None:
        _loading["end_recording"] = origins.record()


def begin_loading(
    settings: Settings, before: Descriptors, look: Callable[[], None]
) -> None:
    """Right before the applications are loaded; main interpreter only.

    Args:
        look: is called at the freeze, as there.
    """
    _loading["before"], _loading["look"] = before, look
    _loading["end_recording"] = origins.record()
    if settings.loading_gc == "off":
        _loading["resume_gc"] = collector.stop()


def _mend_before_hooks() -> None:
    """Mend before the application's own post_fork hook, which uWSGI calls before us.

    It is called in mules and spoolers too, where nothing else of ours is.
    """
    module = sys.modules["uwsgi"]
    theirs = getattr(module, "post_fork_hook", None)

    def post_fork_hook() -> None:
        mend()
        if theirs is not None:
            theirs()

    module.post_fork_hook = post_fork_hook  # type: ignore[attr-defined]


def calls_at_fork() -> bool:
    """Whether uWSGI was told to call what os.register_at_fork() was given."""
    options = sys.modules["uwsgi"].opt
    names = ("py-call-uwsgi-fork-hooks", "py-call-osafterfork")
    return any(name in options for name in names)


@reported
def mend() -> int:
    """In a fresh process, in each interpreter, before any code of the application."""
    mending.mend()
    return 0


@contextlib.contextmanager
def _event_log(settings: Settings, is_main: int) -> Iterator[None]:
    """The main interpreter has opened it; each other has a module of its own."""
    if not is_main and settings.event_log is not None:
        with contextlib.suppress(OSError):  # the main one has said it
            EVENT_LOG.open(settings.event_log, say)
    yield
    if not is_main:
        EVENT_LOG.close()


@reported
def settle(text: str, is_main: int) -> int:
    """Close what was opened, then audit; the number of findings, each printed."""
    settings = settings_of(text)
    callbacks.run_before()
    thaw()
    for fault in close_all():
        say(fault)
    if _loading["end_recording"] is not None:
        _loading["end_recording"]()
    mending.prepare()
    if is_main:
        _mend_before_hooks()
    if settings.fork_safety == "off":
        return 0
    findings = audit(
        _loading["before"], process_wide=bool(is_main), at_fork=calls_at_fork()
    )
    with _event_log(settings, is_main):
        for finding in findings:
            tell(finding, say)
    return len(findings)


@reported
def freeze_here(text: str, walk: Walk | None) -> int:
    """Freeze this interpreter's heap; the number of objects."""
    if settings_of(text).freeze == "on":
        report = freeze(walk, _loading["look"])
        objects = report.objects
        for line in report.fault_lines():
            say(line)
    else:
        objects = collector.objects()
        leave_mortal(writers.remember)
    writers.flush_shared()
    _loading["resume_gc"]()
    return objects


@reported
def begin(text: str) -> int:
    """In a fresh worker, in each interpreter: what it inherited, its collector."""
    mend()
    if settings_of(text).gc == "off":
        collector.stop()
    return 0


@reported
def after_fork() -> int | None:
    """In a worker that can serve, in each interpreter; None: a callback raised."""
    callbacks.run_after()
    return 0


@reported
def unfreeze() -> int:
    """Before a whole finalization: it should find what was frozen."""
    collector.unfreeze()
    return 0


@reported
def run_exit_handlers() -> int:
    """What this interpreter does at exit: uWSGI's own `uwsgi.atexit`, then Python's."""
    hook = getattr(sys.modules.get("uwsgi"), "atexit", None)
    if hook is not None:
        try:
            hook()
        except (Exception, SystemExit) as error:
            say_traceback(error)
    leave.run_exit_handlers()
    return 0


@reported
def flush(waiting: int) -> int:
    """After all exit handlers: what this interpreter has buffered; may wait."""
    writers.flush(waiting=bool(waiting))
    return 0
