"""What gunicorn's worker classes speak, and the refusal of what they cannot serve.

Takes the class and the application. Knows gunicorn's own classes and uvicorn's as they
are; a class that somebody derived from them may speak anything, and is not judged.
"""

from __future__ import annotations

import os
from typing import Any

from cowpreload.interface import Interface, fits, kind_of, name_of

_SPOKEN = {
    "gunicorn.workers.sync": Interface.WSGI,
    "gunicorn.workers.gthread": Interface.WSGI,
    "gunicorn.workers.ggevent": Interface.WSGI,
    "gunicorn.workers.geventlet": Interface.WSGI,
    "gunicorn.workers.gasgi": Interface.ASGI,
    "uvicorn_worker._workers": Interface.ANY_ASGI,
    "uvicorn.workers": Interface.ANY_ASGI,
}


def interface_of(worker_class: type) -> Interface | None:
    """What workers of this class speak; None if that is not known."""
    for each in worker_class.__mro__:
        if not each.__module__.startswith("cowpreload."):
            return _SPOKEN.get(each.__module__)
    return None


def script_name(worker_class: type) -> str:
    """Below which path workers of this class serve a WSGI application; "": the root.

    Those that speak ASGI do not look at it.
    """
    if interface_of(worker_class) in (Interface.ASGI, Interface.ANY_ASGI):
        return ""
    return os.environ.get("SCRIPT_NAME", "").rstrip("/")


def runs_lifespan(cfg: Any) -> bool:
    """Whether the workers will run the lifespan of an ASGI application."""
    uvicorns = getattr(cfg.worker_class, "CONFIG_KWARGS", None)
    if uvicorns is not None:
        return bool(uvicorns.get("lifespan", "auto") != "off")
    return bool(getattr(cfg, "asgi_lifespan", "auto") != "off")


def refuse_unfit(app: Any, interface: Interface | None, name: str) -> None:
    """Refuse an application that every request would get 500 from, for ever.

    Raises:
        RuntimeError: it is certain; with the class to use.
    """
    if interface is None or fits(app, interface):
        return
    kind = kind_of(app)
    use = {
        Interface.WSGI: "cow",
        Interface.ASGI: "cow_asgi or cow_uvicorn",
        Interface.ANY_ASGI: "cow_uvicorn",
    }
    assert kind is not None  # else it fits
    raise RuntimeError(
        f"worker_class={name}: serves {interface.value} and would answer 500, the "
        f"application {name_of(app)} is {kind.value}; use {use[kind]}"
    )
