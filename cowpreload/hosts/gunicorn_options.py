"""Make "cow" and its options known to gunicorn, right after `gunicorn.config` loads.

Called by the start-up hook. Must not import the stages: every `gunicorn` command
comes by here, whatever its worker class.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from cowpreload._version import __version__
from cowpreload.kinds import GUNICORN, Declared, RawValue
from cowpreload.settings import declared_on

WORKERS = {
    "cow": "cowpreload.hosts.gunicorn.CowWorker",
    "cow_asgi": "cowpreload.hosts.gunicorn_asgi.CowASGIWorker",
    "cow_gevent": "cowpreload.hosts.gunicorn_compose.CowGeventWorker",
    "cow_uvicorn": "cowpreload.hosts.gunicorn_compose.CowUvicornWorker",
    "cow_tornado": "cowpreload.hosts.gunicorn_refused.tornado",
}


def _default(declared: Declared) -> RawValue:
    """The environment's value, else the default as an operator would write it.

    `--help` prints it.
    """
    given = os.environ.get(declared.environment, "")
    if given.strip():
        return declared.hidden(given)
    return None if declared.default in (None, ()) else declared.shown_default


def _option(declared: Declared, base: Any) -> None:
    """Define gunicorn's Setting; its metaclass registers it.

    Values are kept as given: gunicorn would stop at the first bad one, and
    `settings_given.read` lists them all.
    """
    attributes: dict[str, Any] = {
        "name": declared.variable,
        "section": "Copy on write",
        "cli": [f"--{declared.option}"],
        "meta": declared.kind.name.upper(),
        "validator": declared.hidden,
        "default": _default(declared),
        "desc": f"{declared.help}\n\nDefault: {declared.why}.",
    }
    if declared.repeatable:
        attributes |= {"action": "append"}
    type(base)(f"Cow_{declared.attribute}", (base,), attributes)


def _say(line: str) -> None:
    """Where there is no log yet; a full disk below stderr ends nothing."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr)


def _warn_without_effect(cfg: Any) -> None:
    """Say so if a setting of ours was given to a server of another worker class."""
    settings = (cfg.settings[declared.variable] for declared in declared_on(GUNICORN))
    given = [each.name for each in settings if each.get() != each.default]
    if given:
        theirs = cfg.worker_class_str
        _say(
            f"cow: {', '.join(given)}: no effect under worker_class={theirs}; "
            f"to run it with us: --worker-class cow --cow-worker {theirs}"
        )


def _say_unknown(error: Exception) -> None:
    from gunicorn import __version__ as version

    _say(
        f"cow: gunicorn {version} is not known to cowpreload {__version__}, and runs "
        f"without it: {type(error).__name__}: {error}; "
        "install a newer cowpreload, or an older gunicorn"
    )


def _worker_class_property(config: Any) -> property:
    """Config.worker_class, which then lets a class of ours see the configuration.

    gunicorn reads it before it decides whether to preload; `setup()`, which it calls
    itself, is not given the configuration. Ours may give another class (cow-worker).
    """
    original = config.worker_class.fget

    def worker_class(cfg: Any) -> Any:
        # gunicorn.arbiter needs gunicorn.config, which is being imported here.
        try:
            from cowpreload.hosts.gunicorn_reload import resolve
        except Exception as error:
            _say_unknown(error)
            return original(cfg)
        found = resolve(cfg, original)
        configure = getattr(found, "cow_configure", None)
        if configure is None:
            _warn_without_effect(cfg)
            return found
        return configure(cfg)

    return property(worker_class)


def _check_config_property(cfg: Any) -> bool:
    """Config.check_config, which gunicorn reads once the configuration is loaded.

    `--check-config` loads the application alone: it accepted what the start refuses.
    """
    wanted = bool(cfg.settings["check_config"].get())
    if wanted:
        with _refusing():
            worker_class = cfg.worker_class
        if hasattr(worker_class, "cow_configure"):
            _check_application(cfg, worker_class)
    return wanted


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Say what is refused as gunicorn says it at a start."""
    try:
        yield
    except RuntimeError as error:
        print(f"\nError: {error}\n", file=sys.stderr)
        sys.exit(1)


def _check_application(cfg: Any, worker_class: type) -> None:
    """Look at what the check loads: gunicorn drops it, and has no hook there."""
    from gunicorn import util

    from cowpreload.hosts.gunicorn_interface import interface_of, refuse_unfit

    load = getattr(util, "import_app", None)
    if load is None:
        return

    def import_app(name: str) -> Any:
        app = load(name)
        with _refusing():
            refuse_unfit(app, interface_of(worker_class), cfg.worker_class_str)
        return app

    util.import_app = import_app  # in a process that ends with the check


def _register(module: ModuleType) -> None:
    # What an unknown gunicorn may lack comes first: nothing is half registered.
    from gunicorn.workers import SUPPORTED_WORKERS

    worker_class = _worker_class_property(module.Config)
    for declared in declared_on(GUNICORN):
        _option(declared, module.Setting)
    module.Config.worker_class = worker_class
    module.Config.check_config = property(_check_config_property)
    SUPPORTED_WORKERS.update(WORKERS)
    if find_spec("gunicorn.workers.gasgi") is None:
        SUPPORTED_WORKERS["cow_asgi"] = "cowpreload.hosts.gunicorn_refused.asgi"


def register(module: ModuleType) -> None:
    """Register with the freshly loaded module `gunicorn.config`.

    A gunicorn that we do not know serves on without us; one line says so.
    """
    try:
        _register(module)
    except Exception as error:
        _say_unknown(error)
