"""A worker class of ours made of any of gunicorn's: our mixins before theirs.

Takes a class, or a name as gunicorn takes it; gives a class, the same one each time.
Raises RuntimeError with the reason where that cannot be; gunicorn shows it as one line.
`cow_gevent` and `cow_uvicorn` are made here too, when gunicorn asks for them by name.
Must not import a worker class that nobody asked for.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any, cast

from gunicorn import __version__ as gunicorn_version
from gunicorn.util import load_class
from gunicorn.workers import SUPPORTED_WORKERS
from gunicorn.workers.base import Worker

from cowpreload.hosts.gunicorn import CowMixin, CowWorker
from cowpreload.hosts.gunicorn_refused import REASONS

_HOSTS = "cowpreload.hosts.gunicorn"

# What a worker class needs of us beside CowMixin, by the class it is made of.
_ADAPTERS = {
    "gunicorn.workers.gthread.ThreadWorker": f"{_HOSTS}_drain.DrainMixin",
    "gunicorn.workers.gasgi.ASGIWorker": f"{_HOSTS}_asgi.ASGIDrainMixin",
    "gunicorn.workers.ggevent.GeventWorker": f"{_HOSTS}_gevent.GeventMixin",
    "uvicorn_worker._workers.UvicornWorker": f"{_HOSTS}_uvicorn.UvicornMixin",
    "uvicorn.workers.UvicornWorker": f"{_HOSTS}_uvicorn.UvicornMixin",
}
# Classes that cannot be ours, by the class they are made of.
_REFUSED = {"gunicorn.workers.gtornado.TornadoWorker": "tornado"}

# Names of ours for what is often asked for: the first class that is installed.
_NAMED = {
    "CowGeventWorker": ("gevent", ("gevent",)),
    "CowUvicornWorker": (
        "uvicorn",
        ("uvicorn_worker.UvicornWorker", "uvicorn.workers.UvicornWorker"),
    ),
}


def _names(theirs: type) -> list[str]:
    return [f"{each.__module__}.{each.__qualname__}" for each in theirs.__mro__]


def _why_not(theirs: Any) -> str:
    """Why `theirs` cannot be ours, and what to do; "" if nothing is known."""
    if not inspect.isclass(theirs) or not issubclass(theirs, Worker):
        return "is no worker class of gunicorn's; name one"
    if issubclass(theirs, CowMixin):
        return "is ours already; give it as worker_class"
    for name in _names(theirs):
        if name in _REFUSED:
            return REASONS[_REFUSED[name]]
    try:
        # As the arbiter calls it: age, ppid, sockets, app, timeout, cfg, log.
        inspect.signature(theirs.__init__).bind(None, *range(7))
    except TypeError as error:
        return f"its __init__ cannot be called as gunicorn does ({error}); mend it"
    return ""


def _load(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@functools.cache
def compose(theirs: Any) -> type:
    """The class of ours that runs `theirs`.

    Raises:
        TypeError: `<rule>; <what to do>`, to follow `cow-worker=<name>: `.
    """
    why_not = _why_not(theirs)
    if why_not:
        raise TypeError(why_not)
    if _names(theirs)[0] == "gunicorn.workers.sync.SyncWorker":
        return CowWorker  # which knows --threads
    adapters = [_load(_ADAPTERS[each]) for each in _names(theirs) if each in _ADAPTERS]
    bases = (*adapters, CowMixin, theirs)
    try:
        return type(f"Cow{theirs.__name__}", bases, {"__module__": __name__})
    except Exception as error:  # its metaclass, its __init_subclass__, its __slots__
        raise TypeError(
            f"cannot be derived from ({error}); derive a class of your own from "
            "cowpreload.hosts.gunicorn.CowMixin and it"
        ) from error


def _known() -> str:
    theirs = sorted(each for each in SUPPORTED_WORKERS if not each.startswith("cow"))
    return f"gunicorn {gunicorn_version} knows {', '.join(theirs)}"


def _found(name: str) -> Any:
    """The class that gunicorn finds by this name.

    Raises:
        TypeError: as `compose`.
    """
    try:
        return load_class(name)
    except AttributeError as error:
        raise TypeError(f"is not found ({error}); {_known()}, or any path") from error
    except RuntimeError as error:
        # gunicorn hands on a traceback as a text, and what it is of is in its end.
        last = [line for line in str(error).splitlines() if line.strip(" ]")][-1]
        raise TypeError(
            f"does not load ({last.strip(' ]')}); {_known()}, or any path"
        ) from error


def chosen(given: Any) -> type:
    """What the setting cow-worker asks for, set up as gunicorn does.

    Raises:
        RuntimeError: `cow-worker=<name>: <rule>; <what to do>`.
    """
    name = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
    try:
        if name in REASONS:
            raise TypeError(REASONS[name])
        found = compose(_found(given) if isinstance(given, str) else given)
    except TypeError as error:
        raise RuntimeError(f"cow-worker={name}: {error}") from error
    cast(Any, found).cow_chosen = True
    setup = getattr(found, "setup", None)
    if setup is not None:
        setup()
    return found


def __getattr__(name: str) -> type:
    if name not in _NAMED:
        raise AttributeError(name)
    extra, candidates = _NAMED[name]
    faults = []
    for each in candidates:
        try:
            return compose(_found(each))
        except TypeError as error:
            faults.append(f"{each}: {cast(str, error.args[0]).partition('; ')[0]}")
    raise RuntimeError(
        f"worker_class=cow_{extra}: {'; '.join(faults)}; "
        f"pip install cowpreload[{extra}]"
    )
