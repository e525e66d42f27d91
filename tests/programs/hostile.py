"""An application whose objects raise when the freeze looks at them; HOSTILE names one.

As a program: freeze, and print the faults of the report.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import cowpreload

KEPT: list[object] = []


def repr_raises() -> None:
    class Source:
        def __repr__(self) -> str:
            raise LookupError("no repr")

        def __call__(self) -> list[object]:
            raise LookupError("no items")

    cowpreload.immortal_too(Source())


def source_exits() -> None:
    cowpreload.immortal_too(lambda: sys.exit(3))


def holder_exits() -> None:
    class Holder:
        pass

    KEPT.append(Holder())
    cowpreload.held_by(Holder, lambda holder: sys.exit(3))


def error_raises() -> None:
    class NoTextError(Exception):
        def __repr__(self) -> str:
            raise SystemExit(3)

    def source() -> list[object]:
        raise NoTextError

    cowpreload.immortal_too(source)


def numpy_is_a_stub() -> None:
    stub: Any = ModuleType("numpy")
    stub.ndarray = stub.void = type("ndarray", (), {})
    sys.modules["numpy"] = stub


def metaclass_raises() -> None:
    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            raise SystemExit(3)

    class Refusing(metaclass=Meta):
        def __init__(self) -> None:
            self.listed = [self]

    KEPT.append(Refusing())


WAYS: list[Callable[[], None]] = [
    *(repr_raises, source_exits, holder_exits),
    *(error_raises, numpy_is_a_stub, metaclass_raises),
]
for _way in WAYS:
    if os.environ.get("HOSTILE") in ("all", _way.__name__):
        _way()


def application(environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


if __name__ == "__main__":
    from cowpreload import writers
    from cowpreload.freezing import freeze
    from cowpreload.immortal import plan
    from cowpreload.settings import Settings

    report = freeze(plan(Settings())[0], writers.remember)
    print(report.immortal.fault, report.fault, sep="\n")
    print(report.objects, len(writers._remembered()), flush=True)
    os._exit(0)
