"""Worker classes composed with ours: what fits, and the reason where it does not."""

from __future__ import annotations

from typing import Any

import pytest
from gunicorn.workers.base import Worker
from gunicorn.workers.gthread import ThreadWorker
from gunicorn.workers.sync import SyncWorker

from cowpreload.hosts.gunicorn import CowMixin, CowWorker
from cowpreload.hosts.gunicorn_compose import compose
from cowpreload.hosts.gunicorn_drain import DrainMixin


class Derived(ThreadWorker):
    pass


class OtherArguments(Worker):
    def __init__(self, name: str) -> None:
        self.name = name


class Final(Worker):
    def __init_subclass__(cls, **given: Any) -> None:
        raise RuntimeError("nothing derives from me")


class Meta(type):
    def mro(cls) -> list[type]:
        if cls.__name__ == "Singular":
            return list(super().mro())
        raise TypeError("this metaclass takes no second base")


class Singular(Worker, metaclass=Meta):
    pass


class Slotted(Worker):
    __slots__ = ("loop",)


def test_what_a_base_needs_comes_with_classes_derived_from_it() -> None:
    made = compose(Derived)
    assert issubclass(made, (Derived,))
    assert made.__mro__.index(DrainMixin) < made.__mro__.index(CowMixin)
    assert made.__mro__.index(CowMixin) < made.__mro__.index(Derived)
    assert compose(Derived) is made


def test_sync_is_the_class_that_knows_threads() -> None:
    assert compose(SyncWorker) is CowWorker


def test_a_class_with_slots_is_composed() -> None:
    assert issubclass(compose(Slotted), Slotted)


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (object, "is no worker class of gunicorn's; "),
        (pytest, "is no worker class of gunicorn's; "),
        (CowWorker, "is ours already; "),
        (OtherArguments, "its __init__ cannot be called as gunicorn does .*; "),
        (Final, r"cannot be derived from \(nothing derives from me\); "),
        (Singular, r"cannot be derived from \(this metaclass takes no .*\); "),
    ],
)
def test_a_class_that_cannot_be_ours_is_told_why(theirs: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        compose(theirs)
